# What the tapes in fixtures/ hold: frames of many kinds on three threads and in a fiber; prints its pid when all run.
class Outer
  module Mixed
    def mixed
      [3, 1, 2].sort_by { |x| spin(400) - x }
    end
  end

  class Inner
    include Mixed

    def self.build
      new.tap { |o| o.guarded }
    end

    def spin(n)
      i = 0
      i += 1 while i < n
      i
    end

    def guarded
      raise 'no'
    rescue RuntimeError
      spin(300)
    ensure
      spin(200)
    end

    define_method(:defined) { |n| [n].each { |x| spin(x) } }

    def method_missing(_name, *args)
      eval('spin(args.first)')
    end

    def respond_to_missing?(*)
      true
    end
  end
end

anonymous = Class.new(Outer::Inner) { def hidden; spin(300); end }
singular = Outer::Inner.new
def singular.own
  [2, 1].sort { |a, b| spin(100); a <=> b }
end

workers = [
  Thread.new { Thread.current.name = 'mixer'; o = Outer::Inner.new; loop { o.mixed } },
  Thread.new { Thread.current.name = 'builder'; loop { Outer::Inner.build.defined(300); anonymous.new.hidden } },
  Thread.new { Thread.current.name = 'sleeper'; sleep }
]
sleep 0.1
puts Process.pid
$stdout.flush
fiber = Fiber.new { loop { singular.own; singular.unknown(200); Fiber.yield } }
loop { fiber.resume; workers.first.alive? }
