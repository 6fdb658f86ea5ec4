class $type < Formula
  desc "$summary"
  homepage "$homepage"
  version "$version"
  license all_of: [{ any_of: ["MIT", "Apache-2.0"] }, "Apache-2.0"]

$platforms
  def install
    prefix.install "bin", "share"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/tiro --version")
  end
end
