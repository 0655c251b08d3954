# One thread waits in raw epoll_wait for ever and counts EINTR; another is busy and states the count.
require_relative 'totals'
require 'fiddle'

LIBC = Fiddle.dlopen(nil)
INT, ADDRESS = Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP
CREATE = Fiddle::Function.new(LIBC['epoll_create1'], [INT], INT)
WAIT = Fiddle::Function.new(LIBC['epoll_wait'], [INT, ADDRESS, INT, INT], INT)
EINTR = Errno::EINTR::Errno

$eintr = $other = 0

class Waiter
  def wait_here(epoll, events)
    WAIT.call(epoll, events, 1, -1) # without the GVL: Fiddle gives it back during a call
  end

  def run
    epoll = CREATE.call(0)
    events = Fiddle::Pointer.malloc(64, Fiddle::RUBY_FREE)
    loop do
      result = wait_here(epoll, events)
      result < 0 && Fiddle.last_error == EINTR ? $eintr += 1 : $other += 1
    end
  end
end

waiter = Thread.new { Waiter.new.run }
waiter.name = 'waiter'
stated = wall_ns
loop do
  spin(20_000)
  next if wall_ns - stated < 50_000_000
  stated = wall_ns
  state_totals('eintr' => $eintr, 'other' => $other)
end
