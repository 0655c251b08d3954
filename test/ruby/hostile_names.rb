# encoding: utf-8
# Methods whose names no output may stumble over, each a leaf by turns. Prints how many there are.
class Hostile
  NAMES = [
    'plain', 'a;b', "new\nline", "tab\there", "return\rhere", 'worker 1', 'worker 1.5', "worker\u00a02", "worker \u0661",
    '-', '--', ' ', '  padded  ', '<b>&"\'', 'a]]>b', "esc\e[31m", "nul\0byte", "line\u2028end", "\u202eturned",
    "\xff\xfe".b, "cut\xe6\x97".b, "\u00e9\u65e5\u672c\u8a9e" * 30, 'n' * 20_000, '# comment 12', 'x 5 6', '%s%n', "\\'"
  ].freeze

  NAMES.each do |name|
    define_method(name) do |till|
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till
    end
  end

  def each_name
    NAMES.each { |name| send(name, Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.004) }
  end
end

$stdout.syswrite("{\"names\":#{Hostile::NAMES.size}}\n")
hostile = Hostile.new
loop { hostile.each_name }
