# Compute that alternates with system calls or page faults in short periods, on some threads; states the true shares.
# usage: skid.rb stat|fault PERIOD_US THREADS
#
# How it knows the truth. The thread's own cpu clock is a system call of 0.6 us: read in every round it would bend a
# period of 25 us. Read in some rounds only, it says nothing: a thread that loses the GVL in a call may burn a hundred
# rounds' worth there, once in a thousand rounds. So every part of every round is timed by the wall clock, 0.05 us
# without entering the kernel. A part of usual length is cpu time as it is. After a longer one (the thread waited,
# or was taken off its cpu) the thread's cpu clock is read: what it gained since its last reading, less the usual parts
# since then, is the cpu time of the long part. The total is that clock alone. The collector never runs inside a
# part: it is off, and is started by hand between rounds.
require_relative 'totals'
require 'fiddle'

KIND, PERIOD_US, THREADS = ARGV[0], ARGV[1].to_f, ARGV[2].to_i
WALL = Process::CLOCK_MONOTONIC
COLLECT = 20_000
PATH = __FILE__
BYTES = (PERIOD_US < 50 ? 3 : 8) * 4096
DATA = 'x' * BYTES

LIBC = Fiddle.dlopen(nil)
INT, SIZE, ADDRESS = Fiddle::TYPE_INT, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_VOIDP
MMAP = Fiddle::Function.new(LIBC['mmap'], [ADDRESS, SIZE, INT, INT, INT, Fiddle::TYPE_LONG], ADDRESS)
MADVISE = Fiddle::Function.new(LIBC['madvise'], [ADDRESS, SIZE, INT], INT)

class Skid
  def initialize
    @address = MMAP.call(0, BYTES, 3, 0x22, -1, 0).to_i # read and write, private and anonymous
    MADVISE.call(@address, BYTES, 15) # MADV_NOHUGEPAGE
    @pages = Fiddle::Pointer.new(@address, BYTES)
  end

  def compute(n)
    i = 0
    i += 1 while i < n
  end

  def stat
    File.stat(PATH)
    File.stat(PATH)
  end

  # 3 or 8 page faults in one copy, and the pages given back.
  def fault
    @pages[0, BYTES] = DATA
    MADVISE.call(@address, BYTES, 4) # MADV_DONTNEED
  end
end

# What one thread counted, in ns of cpu: [rest, compute, other]; rest is what lies between the parts.
class Sums
  attr_reader :cpu, :usual, :long
  attr_accessor :rounds, :last

  def initialize(usual)
    @usual = usual # the longest rest, compute and other that are taken as they are
    @cpu = [0, 0, 0]
    @rounds = @long = @clean = 0
    @started = @read = thread_ns
    @last = wall_ns
  end

  # Parts of usual length.
  def add(rest, compute, other)
    @cpu[0] += rest
    @cpu[1] += compute
    @cpu[2] += other
    @clean += rest + compute + other
  end

  # A long part number k, which ended at that time: its cpu time. The time after it, from which the next part counts.
  def settle(k, ended)
    now = thread_ns
    wall = wall_ns
    since = [wall - ended, 5_000].min # of this method; it may lose the GVL too
    @cpu[k] += [now - @read - @clean - since, 0].max
    @cpu[0] += since
    @read = now
    @clean = 0
    @long += 1
    wall
  end

  def total
    @read + @clean - @started
  end
end

# The same rounds for each kind, so that nothing but the parts and the readings is in the loop.
ROUNDS = <<-RUBY
  def self.rounds(skid, n, sums)
    most_rest, most_compute, most_other = sums.usual
    last = sums.last
    rests = computes = others = i = 0
    while i < 16
      t0 = Process.clock_gettime(WALL, :nanosecond)
      if t0 - last < most_rest
        rests += t0 - last
      else
        sums.add(rests, computes, others)
        rests = computes = others = 0
        t0 = sums.settle(0, t0)
      end
      skid.compute(n)
      t1 = Process.clock_gettime(WALL, :nanosecond)
      if t1 - t0 < most_compute
        computes += t1 - t0
      else
        sums.add(rests, computes, others)
        rests = computes = others = 0
        t1 = sums.settle(1, t1)
      end
      skid.#{KIND}
      last = Process.clock_gettime(WALL, :nanosecond)
      if last - t1 < most_other
        others += last - t1
      else
        sums.add(rests, computes, others)
        rests = computes = others = 0
        last = sums.settle(2, last)
      end
      i += 1
    end
    sums.last = last
    sums.add(rests, computes, others)
    sums.rounds += 16
  end
RUBY
eval(ROUNDS, binding, 'rounds.rb', 1)

# The usual length of something, from many in a row.
def usual(times)
  times.times.map do
    t = wall_ns
    yield
    wall_ns - t
  end.sort[times / 2]
end

def state(all)
  rest, compute, other = all.map(&:cpu).transpose.map(&:sum)
  state_totals('Skid#compute' => compute, "Skid##{KIND}" => other, 'rest' => rest, 'rounds' => all.sum(&:rounds),
               'long' => all.sum(&:long), 'total' => all.sum(&:total))
end

GC.disable
skid = Skid.new
other = usual(2000) { KIND == 'stat' ? skid.stat : skid.fault }
n = rounds_for([PERIOD_US * 1000 - other, 2000].max)
compute = usual(2000) { skid.compute(n) }
$usual = [6_000, compute * 3 / 2 + 4_000, other * 3 / 2 + 2_000]
$all = []
$stated = wall_ns

def work(skid, n, first)
  sums = Sums.new($usual)
  $all << sums
  loop do
    rounds(skid, n, sums)
    next unless first
    GC.start if sums.rounds % COLLECT < 16
    next if wall_ns - $stated < 100_000_000
    $stated = wall_ns
    state($all)
  end
end

(THREADS - 1).times { Thread.new { work(Skid.new, n, false) } }
work(skid, n, true)
