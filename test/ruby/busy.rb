# A busy program. usage: busy.rb ruby|both: one thread of Ruby; or besides a thread that runs C code without the GVL.
require 'zlib'

class Busy
  def work
    loop do
      20_000.times { |i| i + 1 }
      Thread.pass # else the other waits a time slice for the GVL between two calls
    end
  end

  def squeeze(data)
    loop { Zlib::Deflate.deflate(data, 9) }
  end
end

if ARGV[0] == 'both'
  data = Random.new(1).bytes(1 << 20) * 16
  Thread.new { Busy.new.squeeze(data) }
end
$stdout.syswrite("{\"ready\":true}\n")
Busy.new.work
