# Builds pipeline/packages/recipes/nix/package.nix.in, filled in, without nixpkgs: with substitutes for what it takes from there.
# Arguments: package and folder, the paths of the recipe and of the archives; path, the value of PATH.
{ package, folder, path }:
let
  systems = [ "x86_64-linux" "aarch64-linux" ];
  made = import package {
    lib = {
      inherit (builtins) attrNames;
      licenses.mit = "MIT";
      sourceTypes.binaryNativeCode = "binary";
    };
    stdenvNoCC = {
      hostPlatform.system = builtins.currentSystem;
      mkDerivation =
        { pname, version, src, nativeBuildInputs, installPhase, doInstallCheck, installCheckPhase, meta, dontConfigure, dontBuild, dontFixup }:
        assert builtins.all (system: builtins.elem system systems) meta.platforms;
        assert doInstallCheck && nativeBuildInputs == [ "zstd" ];
        derivation {
          name = "${pname}-${version}";
          system = builtins.currentSystem;
          builder = "/bin/sh";
          args = [ "-euc" "runHook() { :; }; tar -xf $src && cd ggufmill-*; eval \"$installPhase\"; eval \"$installCheckPhase\"" ];
          PATH = path;
          inherit src installPhase installCheckPhase;
        };
    };
    fetchurl = { url, sha256 }: builtins.fetchurl {
      url = "file://${folder}/${baseNameOf url}";
      inherit sha256;
    };
    zstd = "zstd";
  };
in
made
