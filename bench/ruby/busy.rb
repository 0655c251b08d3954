# One busy thread at the bottom of a stack of known shape, for bench/run.
# usage: ruby busy.rb plain|nested FRAMES [SLEEPERS]   (stdout is a file)
# It keeps two 64-bit numbers at the start of stdout: iterations done, and the monotonic time in ns at which they were.
# plain: FRAMES - 1 methods under <main>. nested: of these, 19 are blocks and C functions; 35 make 79 native frames on 3.1.
shape = ARGV[0]
frames = ARGV[1].to_i
ARGV[2].to_i.times { Thread.new { sleep } }

STEP = 200_000 # iterations between two looks at the clock: some milliseconds

def work
  done = 0
  while true
    until_done = done + STEP
    done += 1 while done < until_done
    $stdout.pwrite([done, Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)].pack('QQ'), 0)
  end
end

def plain(left)
  left > 0 ? plain(left - 1) : work
end

def nested(levels, left)
  return [1].each_with_index { |_, _| plain(left) } if levels == 0

  [1].each { |_| [1].map { |_| [1, 2].sort_by { |_| nested(levels - 1, left) } } }
end

case shape
when 'plain' then plain(frames - 3)
when 'nested' then nested(2, frames - 23)
end
