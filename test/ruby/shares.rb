# Burns 60, 30 and 10 % of its cpu in three methods that only run Ruby, and states the shares by its own thread clock.
require_relative 'totals'

class Burn
  def sixty(n)
    i = 0
    i += 1 while i < n
  end

  def thirty(n)
    i = 0
    i += 1 while i < n
  end

  def ten(n)
    i = 0
    i += 1 while i < n
  end
end

burn = Burn.new
n = rounds_for(700_000)
sums = [0, 0, 0]
started = thread_ns
stated = wall_ns
loop do
  t0 = thread_ns
  burn.sixty(6 * n)
  t1 = thread_ns
  burn.thirty(3 * n)
  t2 = thread_ns
  burn.ten(n)
  t3 = thread_ns
  sums[0] += t1 - t0
  sums[1] += t2 - t1
  sums[2] += t3 - t2
  next if wall_ns - stated < 50_000_000
  stated = wall_ns
  state_totals('Burn#sixty' => sums[0], 'Burn#thirty' => sums[1], 'Burn#ten' => sums[2], 'total' => thread_ns - started)
end
