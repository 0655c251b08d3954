# Two methods that take turns in lock-step with a sampler's period: half of each period in the one, half in the other.
# usage: lockstep.rb PERIOD_NS
require_relative 'totals'

class Step
  def first(till)
    nil while wall_ns < till
  end

  def second(till)
    nil while wall_ns < till
  end
end

period = ARGV[0].to_i
step = Step.new
sums = [0, 0]
started = thread_ns
stated = start = wall_ns
k = 0
loop do
  # Never catch up: a period that was missed is left out.
  k = [k, (wall_ns - start) / period].max
  t0 = thread_ns
  step.first(start + k * period + period / 2)
  t1 = thread_ns
  step.second(start + (k + 1) * period)
  t2 = thread_ns
  sums[0] += t1 - t0
  sums[1] += t2 - t1
  k += 1
  next if wall_ns - stated < 50_000_000
  stated = wall_ns
  state_totals('Step#first' => sums[0], 'Step#second' => sums[1], 'total' => thread_ns - started)
end
