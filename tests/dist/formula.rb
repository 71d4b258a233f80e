# formula.rb FORMULA ARCHIVE WORK: carries out a formula of Homebrew, with substitutes for Homebrew: checks what it says about the
# archive, and installs it in WORK/prefix and tests it there, as root or not.
require "digest"
require "fileutils"
require "pathname"

module Hardware
  module CPU
    def self.arm? = RUBY_PLATFORM.start_with?("aarch64", "arm64")
  end
end

class Pathname
  def install(files) = FileUtils.cp_r(files, FileUtils.mkdir_p(self).first)

  def install_symlink(*sources)
    raise "nothing to link in #{self}" if sources.flatten.empty?

    sources.flatten.each { |source| FileUtils.ln_s(source.relative_path_from(mkpath || self), self) }
  end
end

# What a formula calls.
class Formula
  PREFIX = Pathname(ARGV[2]).expand_path / "prefix"
  FOLDERS = { bin: "bin", libexec: "libexec", man1: "share/man/man1", bash_completion: "etc/bash_completion.d",
              zsh_completion: "share/zsh/site-functions", fish_completion: "share/fish/vendor_completions.d" }.freeze
  FOLDERS.each { |name, folder| define_method(name) { PREFIX / folder } }

  class << self
    def said = @said ||= Hash.new { |all, name| all[name] = [] }
    %i[desc homepage url version sha256 license depends_on].each { |name| define_method(name) { |value| said[name] << value } }
    def test(&block) = define_method(:check, &block)
  end

  def version = File.basename(self.class.said[:url].first)[/\d+\.\d+\.\d+/]

  def shell_output(command)
    output = `#{command}`
    raise "#{command}: #{$CHILD_STATUS}" unless $CHILD_STATUS.success?

    output
  end

  def assert_match(expected, text)
    raise "no #{expected} in #{text}" unless text.include?(expected)
  end
end

require "English"
formula, archive, work = ARGV.map { |path| File.expand_path(path) }
load formula
said = Ggufmill.said
raise "the archive: #{said[:url]}" unless File.basename(said[:url].first) == File.basename(archive)
raise "the checksum: #{said[:sha256]}" unless said[:sha256] == [Digest::SHA256.file(archive).hexdigest]
raise "no system: #{said[:depends_on]}" unless said[:depends_on].include?(:linux)

system("tar", "-C", work, "-xf", archive, exception: true)
Dir.chdir(File.join(work, File.basename(archive, ".tar.zst"))) { Ggufmill.new.install }
Ggufmill.new.check
FileUtils.rm_rf(File.join(work, File.basename(archive, ".tar.zst")))
raise "a broken link" unless Formula::PREFIX.glob("**/*").all?(&:exist?)
