# frozen_string_literal: true

# A little shop with something for each kind of frame: named threads that parse JSON, sort, compress, build strings,
# and wait for input. Runs until it is stopped; prints its process id first.
require "json"
require "set"
require "zlib"

# Orders as they come from outside: text that has to be parsed.
class Orders
  CITIES = %w[Oslo Lima Kyoto Accra Quito Turin].freeze

  def initialize(seed)
    @random = Random.new(seed)
  end

  def batch(count)
    Array.new(count) { |i| order(i) }
  end

  def text(count)
    JSON.generate(batch(count))
  end

  private

  def order(id)
    { "id" => id, "city" => CITIES[@random.rand(CITIES.size)], "total" => @random.rand(10_000) / 100.0,
      "lines" => Array.new(4) { |n| { "sku" => "sku-#{@random.rand(500)}", "count" => n + 1 } } }
  end
end

# Reads orders and sums them up by city.
class Intake
  def initialize(orders)
    @text = orders.text(300)
  end

  def run_once
    totals = Hash.new(0.0)
    parse(@text).each { |order| count(totals, order) }
    totals
  end

  private

  def parse(text)
    JSON.parse(text)
  end

  def count(totals, order)
    totals[order["city"]] += order["lines"].sum { |line| line["count"] * order["total"] }
  end
end

# Ranks products: sort_by is C that calls back into Ruby for each element.
class Ranking
  def initialize(orders)
    @orders = orders.batch(1500)
  end

  def run_once
    @orders.sort_by { |order| weight(order) }.first(10)
  end

  private

  def weight(order)
    skus = order["lines"].map { |line| line["sku"] }.to_set
    order["total"] * skus.size + order["city"].sum
  end
end

# Packs the day's journal: nearly all of its time is in libz.
class Archive
  def initialize(orders)
    @journal = orders.text(2000)
  end

  def run_once
    Zlib::Deflate.deflate(@journal, Zlib::BEST_COMPRESSION).bytesize
  end
end

# Writes invoices: gsub with a block, string building, a lot of garbage.
class Invoices
  TEMPLATE = "Order {id} to {city}: {total} EUR\n" * 8

  def initialize(orders)
    @orders = orders.batch(200)
  end

  def run_once
    @orders.map { |order| invoice(order) }.join.bytesize
  end

  private

  def invoice(order)
    TEMPLATE.gsub(/\{(\w+)\}/) { field(order, Regexp.last_match(1)) }
  end

  def field(order, name)
    order.fetch(name).to_s
  end
end

# Waits for the bell, as a server waits for its clients.
class Counter
  def initialize(bell)
    @bell = bell
  end

  def run_once
    @bell.readline
  end
end

# Rings the bell ten times a second.
class Clock
  def initialize(bell)
    @bell = bell
  end

  def run_once
    sleep 0.1
    @bell.puts Time.now.to_f
  end
end

def start(name, worker)
  Thread.new do
    loop { worker.run_once }
  end.tap { |thread| thread.name = name }
end

reader, writer = IO.pipe
workers = {
  "intake" => Intake.new(Orders.new(1)),
  "ranking" => Ranking.new(Orders.new(2)),
  "archive" => Archive.new(Orders.new(3)),
  "invoices" => Invoices.new(Orders.new(4)),
  "counter" => Counter.new(reader),
  "clock" => Clock.new(writer)
}

Thread.abort_on_exception = true
threads = workers.map { |name, worker| start(name, worker) }
$stdout.sync = true
puts "shop: process #{Process.pid}, threads #{workers.keys.join(", ")}"
%w[INT TERM].each { |signal| trap(signal) { exit! 0 } }
threads.each(&:join)
