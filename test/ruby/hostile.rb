# Methods, files and a thread with names that formats choke on; each takes a turn of the same length at a known depth.
require 'json'

NAMES = ['a;b', "new\nline", "tab\there", "cr\rlf", 'trailing 12', 'two 3 4', '1.5 2.5', '', '-', '--', "nul\0inside",
         "bad\xFFutf8".b, "cut\xE2\x82".b, '<script>&"\'', ']]>', '[bracket]', 'x_[k]', '名前', "\u202Eright", "\e[31mred",
         '# comment', 'a' * 20_000, 'tail ', 'colon:7', 'dash - a.rb:9', "no\u00a0break 5", "\u0663 \u0664", '%s%n', '\\n'].freeze
FILES = ["semi;colon.rb", "new\nline.rb", "bad\xFF.rb".b, 'name 12', '', ' ', '<b>&.rb', 'x:7', 'é' * 300].freeze

class Hostile
  NAMES.each do |name|
    define_method(name.to_sym) do |n|
      i = 0
      i += 1 while i < n
    end
  end

  FILES.each_with_index do |file, k|
    class_eval("def file_#{k}(n)\n  i = 0\n  i += 1 while i < n\nend", file, 1)
  end

  def run(n)
    METHODS.each { |m| m.call(n) }
  end
end

# A real file with such a name too.
if ARGV[0]
  path = File.join(ARGV[0], "lo;ad\ned \xFF 12.rb".b)
  File.binwrite(path, "class Hostile\ndef loaded(n)\n  i = 0\n  i += 1 while i < n\nend\nend\n")
  load path
end

hostile = Hostile.new
METHODS = (Hostile.instance_methods(false) - [:run]).map { |m| hostile.method(m) }
$stdout.syswrite(JSON.generate('methods' => METHODS.size) + "\n")
thread = Thread.new { hostile.run(100_000) while true }
thread.name = "th;r\nead 12"
thread.join
