# Six nested programs in which C calls Ruby calls C calls Ruby; each states its own stack, then spins on that line.
# usage: merge.rb sort_by|json|comparable|enumerator|fiber|define_method
require 'json'

NAME = ARGV[0]
$go = false
trap('USR1') { $go = true }

def say(locations)
  $go = false
  frames = locations.map { |l| [l.label, l.path, l.lineno] }
  $stdout.syswrite(JSON.generate('frames' => frames, 'round' => $round) + "\n")
end

# Depth changes from round to round, and with it every address on the stack.
def deeper(n, &block)
  n.zero? ? yield : [n].each { |_| deeper(n - 1, &block) }
end

class Coded
  def initialize(n); @n = n; end

  def to_json(*args)
    return { 'inner' => [Coded.new(@n - 1)] }.to_json(*args) unless @n.zero?
    say(caller_locations(0)); nil until $go
    '1'
  end

  def to_s; 'coded'; end
end

class Compared
  include Comparable
  attr_reader :n

  def initialize(n); @n = n; end

  def <=>(other)
    if n == other.n && n == 5
      say(caller_locations(0)); nil until $go
    end
    n <=> other.n
  end
end

class Defined
  define_method(:outer) { |n| [n].map { |x| inner(x) { |y| [y].each_slice(1) { |z| last(z) } } } }
  define_method(:inner) { |n, &block| { n => 1 }.each { |k, _| block.call(k) } }
  define_method(:last) { |_| say(caller_locations(0)); nil until $go }
end

PROGRAMS = {
  'sort_by' => lambda do |n|
    [1].map { |_| [[n, 1]].each { |a| a.sort_by { |_| say(caller_locations(0)); nil until $go; 1 } } }
  end,
  'json' => ->(n) { [0].each { |_| JSON.generate({ 'list' => [1, Coded.new(n % 3)] }) } },
  'comparable' => lambda do |_|
    [Compared.new(5)].each { |a| [Compared.new(5)].select { |b| [a >= b].map { |x| x } } }
  end,
  'enumerator' => lambda do |n|
    inner = Enumerator.new { |y| [n].each { |v| say(caller_locations(0)); nil until $go; y << v } }
    outer = Enumerator.new { |y| [1].each { |_| y << [inner.next].map { |v| v } } }
    [0].each { |_| outer.next }
  end,
  'fiber' => lambda do |n|
    fiber = Fiber.new { |x| [x].each { |v| [v].sort_by { |w| say(caller_locations(0)); nil until $go; w } } }
    [n].each { |v| [v].map { |w| fiber.resume(w) } }
  end,
  'define_method' => ->(n) { [n].each { |v| Defined.new.outer(v) } }
}.freeze

$round = 0
loop do
  $round += 1
  deeper($round % 5) { PROGRAMS.fetch(NAME).call($round) }
end
