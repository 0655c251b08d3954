# Programs whose stacks change places. usage: changing.rb fibers | threads MS | nested DEPTH: two methods of equal cost in
# main and in a fiber, resumed in turns; one thread after the other, each with MS ms of work; deep blocks on four threads.
require_relative 'totals'

class Changing
  def in_main(n)
    spin(n)
  end

  def in_fiber(n)
    spin(n)
  end

  def in_thread(ms)
    t = thread_ns
    nil while thread_ns - t < ms * 1_000_000
  end

  def nest(depth, &block)
    [1].each { depth.zero? ? block.call : nest(depth - 1, &block) }
  end
end

c = Changing.new
puts '"ready"'
$stdout.flush
case ARGV[0]
when 'fibers'
  n = rounds_for(200_000)
  fiber = Fiber.new { loop { c.in_fiber(n); Fiber.yield } }
  loop { c.in_main(n); fiber.resume }
when 'threads'
  loop { Thread.new { c.in_thread(ARGV[1].to_f) }.join }
when 'nested'
  3.times { Thread.new { c.nest(ARGV[1].to_i) { loop { spin(300) } } } }
  c.nest(ARGV[1].to_i) { loop { spin(300) } }
end
