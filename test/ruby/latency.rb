# Says when a signal reached its handler: one CLOCK_MONOTONIC time a line. usage: latency.rb busy|idle
require_relative 'totals'

trap('USR1') { $stdout.syswrite("#{wall_ns}\n") }

def busy
  i = 0
  i += 1 while true
end

# More threads, so that there is something to sample beside the one that takes the signal.
def idle
  Thread.new { loop { spin(20_000); sleep 0.0005 } }
  sleep
end

$stdout.syswrite("{\"ready\":true}\n")
ARGV[0] == 'busy' ? busy : idle
