# Threads with methods of their own: worker K runs only methods whose names end in _K, in blocks and in a fiber too.
# Short-lived threads come and go beside them, so that native threads are used again by other Ruby threads.
# usage: threads.rb COUNT
count = ARGV[0].to_i

count.times do |k|
  Object.class_eval <<-RUBY, "worker_#{k}.rb", 1
    class Worker_#{k}
      def outer_#{k}
        [1, 2].each { |x| middle_#{k}(x) }
      end

      def middle_#{k}(x)
        3.times { |y| inner_#{k}(x + y) }
        @fiber ||= Fiber.new { loop { in_fiber_#{k}; Fiber.yield } }
        @fiber.resume
      end

      def inner_#{k}(z)
        i = 0
        i += 1 while i < 2000 + z
      end

      def in_fiber_#{k}
        [3, 1, 2].sort_by { |v| inner_#{k}(v); v }
      end

      def work_#{k}
        loop do
          10.times { outer_#{k} }
          sleep 0.001
        end
      end
    end
  RUBY
end

class Passing
  def passing
    i = 0
    i += 1 while i < 30_000
    deep_passing(20)
  end

  def deep_passing(n)
    n.zero? ? [1].each { sleep 0.002 } : deep_passing(n - 1)
  end
end

count.times do |k|
  Thread.new { Object.const_get("Worker_#{k}").new.send("work_#{k}") }
end
$stdout.syswrite("{\"ready\":true}\n")
loop { 3.times.map { Thread.new { Passing.new.passing } }.each(&:join) }
