# Compute that alternates with system calls or page faults in short periods, on some threads; states the true shares.
# usage: skid.rb stat|fault PERIOD_US THREADS
#
# How it knows the truth: EVERY round is timed by the thread's own cpu clock, for a thread that loses the GVL in a call
# may burn a hundred rounds' worth there, once in a thousand rounds: a sample of the rounds says nothing. The readings
# belong to neither part. What a reading adds to a part (from the instant that one reading returns to the
# instant of the next: the cost of one reading) is measured all the time, by two readings in a row in each 16th round,
# and taken off. The collector never runs inside a part: it is off, and is started by hand between rounds.
require_relative 'totals'
require 'fiddle'

KIND, PERIOD_US, THREADS = ARGV[0], ARGV[1].to_f, ARGV[2].to_i
CLOCK = Process::CLOCK_THREAD_CPUTIME_ID
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

# What one thread counted: ns in the parts, the number of rounds, and the cost of a reading.
class Sums
  attr_accessor :compute, :other, :rounds, :empty, :empties, :started, :now

  def initialize
    @compute = @other = @rounds = @empty = @empties = 0
    @started = @now = Process.clock_gettime(CLOCK, :nanosecond)
  end

  # Two readings in a row; one that was held up says nothing of their cost.
  def reading(ns)
    return if ns > 5_000
    @empty += ns
    @empties += 1
  end

  def cost
    rounds * empty / [empties, 1].max
  end
end

# One loop for each kind, so that nothing but the parts and the readings is in it.
LOOPS = {
  'stat' => lambda do |skid, n, sums|
    i = 0
    while i < 16
      t1 = Process.clock_gettime(CLOCK, :nanosecond)
      skid.compute(n)
      t2 = Process.clock_gettime(CLOCK, :nanosecond)
      skid.stat
      t3 = Process.clock_gettime(CLOCK, :nanosecond)
      sums.compute += t2 - t1
      sums.other += t3 - t2
      i += 1
    end
    sums.reading(Process.clock_gettime(CLOCK, :nanosecond) * -1 + Process.clock_gettime(CLOCK, :nanosecond))
  end,
  'fault' => lambda do |skid, n, sums|
    i = 0
    while i < 16
      t1 = Process.clock_gettime(CLOCK, :nanosecond)
      skid.compute(n)
      t2 = Process.clock_gettime(CLOCK, :nanosecond)
      skid.fault
      t3 = Process.clock_gettime(CLOCK, :nanosecond)
      sums.compute += t2 - t1
      sums.other += t3 - t2
      i += 1
    end
    sums.reading(Process.clock_gettime(CLOCK, :nanosecond) * -1 + Process.clock_gettime(CLOCK, :nanosecond))
  end
}

# Cost of the other part in ns, in a batch; compute then fills the rest of the period.
def cost_of_other(skid)
  batch = lambda do
    t = thread_ns
    500.times { KIND == 'stat' ? skid.stat : skid.fault }
    (thread_ns - t) / 500
  end
  batch.call
  5.times.map { batch.call }.min
end

def state(all)
  state_totals('Skid#compute' => all.sum { |s| s.compute - s.cost }, "Skid##{KIND}" => all.sum { |s| s.other - s.cost },
               'rounds' => all.sum(&:rounds), 'readings' => all.sum { |s| 3 * s.cost },
               'total' => all.sum { |s| s.now - s.started })
end

GC.disable
$all = []
$stated = wall_ns

def work(n, first)
  skid = Skid.new
  n ||= rounds_for([PERIOD_US * 1000 - cost_of_other(skid), 2000].max)
  (THREADS - 1).times { Thread.new { work(n, false) } } if first
  sums = Sums.new
  $all << sums
  loop do
    LOOPS[KIND].call(skid, n, sums)
    sums.now = Process.clock_gettime(CLOCK, :nanosecond)
    sums.rounds += 16
    next unless first
    GC.start if sums.rounds % COLLECT < 16
    next if wall_ns - $stated < 100_000_000
    $stated = wall_ns
    state($all)
  end
end

work(nil, true)
