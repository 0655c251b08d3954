# Each kind of frame: the program states its own stack on the line on which it then spins or blocks in read.
# usage: truth.rb main|thread|fiber spin|read
require 'json'

PLACE, HOW = ARGV
$read = HOW == 'read'
$go = false
$row = nil
$stdin.binmode

# The stack of the caller, innermost first, as Ruby tells it; the caller then spins until a signal, or reads.
def say(locations)
  $go = false
  $flags.each { |f| f.go = false }
  frames = locations.map { |l| [l.label, l.path, l.lineno] }
  $stdout.syswrite(JSON.generate('row' => $row, 'frames' => frames) + "\n")
end

class WithAttr
  attr_accessor :go, :other
end
WithStruct = Struct.new(:go, :other)
$attr = WithAttr.new
$struct = WithStruct.new
$flags = [$attr, $struct]
trap('USR1') { $attr.go = $struct.go = $go = true }

module Mix
  def mixed; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end
end

module Pre
  def pre; super; end
end

class Base
  def sup; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end
end

class Foo < Base
  include Mix
  prepend Pre

  def m; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end

  def self.s; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end

  class << self
    def cs; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end
  end

  def blk
    [1].each { say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) }
  end

  def blk2
    [1].each do
      [2].map { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) }
    end
  end

  define_method(:defd) { say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) }
  define_method(:unbound, instance_method(:m))

  def resc
    raise 'x'
  rescue RuntimeError
    say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)
  end

  def block_resc
    [1].each do
      begin
        raise 'x'
      rescue RuntimeError
        say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)
      end
    end
  end

  def ens_raise
    raise 'x'
  ensure
    say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)
  end

  def ens_normal
    nil
  ensure
    say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)
  end

  def ev; eval('say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)'); end

  def ev_file
    eval("\nsay(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)", binding, 'given.rb', 41)
  end

  def ev_binding
    eval('say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)', binding)
  end

  def method_missing(name, *_args)
    return super unless name == :gone
    say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)
  end

  def respond_to_missing?(name, _all = false); name == :gone; end

  def orig; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end
  alias other orig

  def sup; super; end

  def pre; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end

  def yielder; yield; end

  def in_instance; instance_eval { say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) }; end
end

module ModFn
  module_function

  def mf; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end
end

class Target; end

module Refined
  refine Target do
    def refd; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end
  end
end
using Refined

class Made
  def initialize; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end
end

AnonClass = [Class.new { def an; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end }]
AnonModule = [Module.new { def amod; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end }]
AnonMixed = [Object.new.extend(AnonModule[0])]

SINGLE = Foo.new
def SINGLE.osing; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end

def top_level; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end

ROWS = {}
def row(name, &body); ROWS[name] = body; end

row('method') { Foo.new.m }
row('self.s') { Foo.s }
row('class << self') { Foo.cs }
row('block in method') { Foo.new.blk }
row('nested block') { Foo.new.blk2 }
row('block at top level') { say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) }
row('class body') { class Body; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end }
row('module body') { module Outer; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end }
row('nested class body') { module Outer; class In; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end; end }
row('singleton class body') { class << SINGLE; say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); end }
row('required file') { require_relative 'truth_required' }
row('loaded file') { load File.join(__dir__, 'truth_loaded.rb') }
row('define_method block') { Foo.new.defd }
row('define_method UnboundMethod') { Foo.new.unbound }
row('rescue') { Foo.new.resc }
row('rescue in block') { Foo.new.block_resc }
row('ensure while raising') { Foo.new.ens_raise rescue nil }
row('ensure on normal path') { Foo.new.ens_normal }
row('eval') { Foo.new.ev }
row('eval with file and line') { Foo.new.ev_file }
row('eval with binding') { Foo.new.ev_binding }
row('eval at top level') { eval('say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)') }
row('eval in <main>') { eval('say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)', TOPLEVEL_BINDING) }
row('cfunc') { { 1 => 2 }.each_pair { |_, _| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('cfunc class method') { Dir.chdir('/') { say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('public_send') { Foo.new.public_send(:m) }
row('Method#call') { Foo.new.method(:m).call }
row('instance_eval') { Foo.new.in_instance }
row('send') { Foo.new.send(:m) }
row('__send__') { Foo.new.__send__(:m) }
row('Symbol#to_proc') { [Foo.new].each(&:m) }
row('Proc#call') { proc { say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) }.call }
row('lambda') { lambda { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) }.(1) }
row('yield') { Foo.new.yielder { say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('attr accessors') { say(caller_locations(0)); $read ? ($attr.go = $stdin.read(1)) : (($attr.other = $attr.go) until $attr.go) }
row('Struct accessors') { say(caller_locations(0)); $read ? ($struct.go = $stdin.read(1)) : (($struct.other = $struct.go) until $struct.go) }
row('each_with_index') { [1].each_with_index { |_, _| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('inject') { [1, 2].inject { |_, _| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('sort_by') { [1].sort_by { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); 1 } }
row('Enumerator') { [1].each.with_index(1) { |_, _| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('Enumerator#next') { Enumerator.new { |y| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); y << 1 }.next }
row('method_missing') { Foo.new.gone(1) }
row('alias') { Foo.new.other }
row('super') { Foo.new.sup }
row('prepend') { Foo.new.pre }
row('include') { Foo.new.mixed }
row('module_function') { ModFn.mf }
row('refinement') { Target.new.refd }
row('anonymous class') { AnonClass[0].new.an }
row('anonymous module') { AnonMixed[0].amod }
row('singleton method of an instance') { SINGLE.osing }
row('def at top level') { top_level }
row('Class#new') { Made.new }
row('Kernel#loop') { loop { say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go); break } }
row('Kernel#tap') { 1.tap { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('Kernel#then') { 1.then { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('Integer#times') { 1.times { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('Array#each') { [1].each { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('Array#map') { [1].map { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }
row('Array#select') { [1].select { |_| say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go) } }

def run_rows
  names = ROWS.keys
  until names.empty?
    $row = names.shift
    ROWS[$row].call
  end
end

case PLACE
when 'main' then run_rows
when 'thread'
  thread = Thread.new { run_rows }
  thread.name = 'truth'
  thread.join
when 'fiber' then Fiber.new { run_rows }.resume
end
if PLACE == 'main'
  $row = 'main program'
  say(caller_locations(0)); $read ? $stdin.read(1) : (nil until $go)
end
$stdout.syswrite(JSON.generate('done' => true) + "\n")
