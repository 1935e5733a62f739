#!/bin/sh
# Makes dist/jojlab_VERSION_amd64.deb from dist/*.whl and target/man: joj, its Python packages at
# the versions of requirements.txt, completion for three shells, man pages. Debian's packages
# that joj needs (packages.txt) are its dependencies, so apt installs them.
#
# /usr/lib/jojlab is a virtual environment of Debian's Python: programs that joj runs do not find
# its packages, and the processes of its own do. Build it where it will be installed.
set -eu
cd "$(dirname "$0")/.."
wheel=$(ls dist/jojlab-*.whl)
version=${wheel#dist/jojlab-}
version=${version%%-*}
of='import sys; print("%d.%d" % sys.version_info[:2])'
python=$(.venv/bin/python -c "$of")
has=$(/usr/bin/python3 -c "$of")
[ "$python" = "$has" ] || {
	echo "setup: .venv is of Python $python, Debian has $has: use /usr/bin/python3" >&2
	exit 3
}
next=${python%.*}.$((${python#*.} + 1))
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"
home=$stage/usr/lib/jojlab
packages=$home/lib/python$python/site-packages
mkdir -p "$home/bin"
ln -s /usr/bin/python3 "$home/bin/python3"
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$home/pyvenv.cfg"
pip='.venv/bin/pip install -q --disable-pip-version-check --no-compile'
setup/locked.sh run >"$stage/locked.txt"
$pip --target "$packages" --require-hashes --only-binary :all: -r "$stage/locked.txt"
rm "$stage/locked.txt"
rm -r "${packages:?}/bin"  # commands of the packages
$pip --target "$packages" --no-deps "$wheel"
# The command joj of pip, and where the wheel lay. pip's records of what is gone would tell where
# all this was built.
rm -r "${packages:?}/bin" "$packages"/jojlab-*.dist-info/direct_url.json
sed -i -e '/direct_url.json,/d' -e '/bin\//{/^\.\.\//d}' "$packages"/*.dist-info/RECORD

# Beside the agent, for joj fleet demo.
install -m 755 "${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-gnu/release/joj-uploader" \
	"$packages/jojlab/data/joj-uploader"

mkdir -p "$stage/usr/bin" "$stage/usr/share/doc/jojlab" "$stage/usr/share/man/man1" \
	"$stage/usr/share/bash-completion/completions" "$stage/usr/share/zsh/vendor-completions" \
	"$stage/usr/share/fish/vendor_completions.d" "$stage/DEBIAN"
cat >"$stage/usr/bin/joj" <<'EOF'
#!/usr/lib/jojlab/bin/python3
from jojlab.cli import main

if __name__ == "__main__":  # a process that runs guests imports this file
    main()
EOF
chmod 755 "$stage/usr/bin/joj"
cp LICENSE "$stage/usr/share/doc/jojlab/copyright"
cp kernel/LICENSE "$stage/usr/share/doc/jojlab/copyright.kernel"
cp target/linked/licences.txt "$stage/usr/share/doc/jojlab/copyright.linked"
cp target/man/*.1 "$stage/usr/share/man/man1"
gzip -9n "$stage"/usr/share/man/man1/*.1
completion() {
	_JOJ_COMPLETE=$1_source .venv/bin/joj
}
completion bash >"$stage/usr/share/bash-completion/completions/joj"
completion zsh | sed '/./,$!d' >"$stage/usr/share/zsh/vendor-completions/_joj"
completion fish >"$stage/usr/share/fish/vendor_completions.d/joj.fish"

depends=$(sed 's/#.*//; s/[[:space:]]*$//; /^python3/d; /^$/d' setup/packages.txt |
	paste -sd , | sed 's/,/, /g')
cat >"$stage/DEBIAN/control" <<EOF
Package: jojlab
Version: $version
Architecture: amd64
Maintainer: The authors of jojlab <jojlab@localhost>
Depends: python3 (>= $python), python3 (<< $next), $depends
Section: devel
Priority: optional
Description: what one COMMIT really costs on flash, and where it goes
 Runs SQLite on Linux filesystems in a guest with a virtual clock, on a modelled
 flash device; attributes every block I/O to its file, and to journal, metadata
 or data; cuts the power, and says what would make a commit cheaper.
EOF
# joj starts faster from what is compiled; a file that cannot be compiled is read as it is.
cat >"$stage/DEBIAN/postinst" <<'EOF'
#!/bin/sh
set -e
/usr/lib/jojlab/bin/python3 -m compileall -q /usr/lib/jojlab/lib >/dev/null 2>&1 || true
EOF
cat >"$stage/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
find /usr/lib/jojlab -name __pycache__ -prune -exec rm -r {} +
EOF
chmod 755 "$stage/DEBIAN/postinst" "$stage/DEBIAN/prerm"
setup/pack-deb.sh "$stage" "dist/jojlab_${version}_amd64.deb"
