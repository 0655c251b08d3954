# A small web application on Sinatra, with work of several kinds; /profile/start and /profile/stop run StackProf in it.
require 'json'
require 'erb'
require 'sinatra/base'

module Shop
  # Pure compute between system calls: where a late stop bends a profile most.
  class Files
    def look(times)
      times.times { check(File.stat(__FILE__)) }
    end

    def check(stat)
      sum = stat.size
      i = 0
      while i < 2_500
        sum = (sum * 31 + i) & 0xffff
        i += 1
      end
      sum
    end
  end

  class Catalogue
    Item = Struct.new(:name, :price, :tags)

    def initialize
      @items = Array.new(300) { |k| Item.new("item #{k * 7919 % 300}", k * 31 % 97, %w[a b c].rotate(k)) }
    end

    def best
      @items.sort_by { |i| [-i.price, i.name] }.first(50)
    end

    def total
      @items.inject(0) { |sum, i| sum + i.price * i.tags.size }
    end

    def index
      @items.group_by(&:price).map { |price, items| [price, items.map(&:name).join(',')] }.to_h
    end
  end

  class Page
    TEMPLATE = ERB.new('<ul><% rows.each do |r| %><li><%= ERB::Util.h(r.name) %>: <%= r.price %></li><% end %></ul>')

    def render(rows)
      TEMPLATE.result(binding)
    end
  end

  class Codec
    def encode(rows)
      JSON.generate(rows.map { |r| { 'name' => r.name, 'price' => r.price, 'tags' => r.tags } })
    end

    def decode(text)
      JSON.parse(text).sum { |r| r['price'] }
    end
  end

  class Digest
    def of(text)
      h = 17
      text.each_byte { |b| h = (h * 31 + b) & 0xffffffff }
      h
    end
  end
end

class App < Sinatra::Base
  set :environment, :production
  set :logging, false
  disable :protection

  CATALOGUE = Shop::Catalogue.new
  LOG = File.open(File::NULL, 'w')

  get('/page') { Shop::Page.new.render(CATALOGUE.best) }
  get('/json') do
    text = Shop::Codec.new.encode(CATALOGUE.best)
    "#{Shop::Codec.new.decode(text)} #{Shop::Digest.new.of(text)}"
  end
  get('/files') { Shop::Files.new.look(30).to_s }
  get('/index') { CATALOGUE.index.size.to_s + CATALOGUE.total.to_s }
  after { LOG.syswrite("#{request.path_info} #{response.status}\n") }
end

# Starts and stops StackProf, and gives its profile; everything else goes on to the application.
class Profiled
  def initialize(app); @app = app; end

  def call(env)
    case env['PATH_INFO']
    when '/profile/start'
      require 'stackprof'
      [200, { 'content-type' => 'text/plain' }, [StackProf.start(mode: :cpu, interval: 1000, raw: true).to_s]]
    when '/profile/stop'
      StackProf.stop
      found = StackProf.results
      frames = found[:frames].map { |id, f| [id.to_s, { 'name' => f[:name].to_s.scrub, 'file' => f[:file].to_s, 'line' => f[:line] }] }.to_h
      [200, { 'content-type' => 'application/json' }, [JSON.generate('frames' => frames, 'raw' => found[:raw] || [])]]
    else
      @app.call(env)
    end
  end
end

use Profiled
run App
