# Statements of what a program counted itself, one JSON document a line, for the tests that compare shares.
require 'json'

# CPU time of the calling thread in ns, by its own clock.
def thread_ns
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
end

def wall_ns
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

# "at" is CLOCK_MONOTONIC in seconds: the test takes differences between two statements.
def state_totals(totals)
  $stdout.syswrite(JSON.generate({ 'at' => wall_ns / 1e9 }.merge(totals)) + "\n")
end

# A loop of pure Ruby: no method call, no C function.
def spin(n)
  i = 0
  i += 1 while i < n
end

# How many rounds of such a loop take so many ns of this thread's cpu.
def rounds_for(ns)
  spin(200_000)
  best = 5.times.map { t = thread_ns; spin(200_000); thread_ns - t }.min
  (200_000.0 * ns / best).round
end
