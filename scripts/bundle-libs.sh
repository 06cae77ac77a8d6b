#!/usr/bin/env bash
# Copies the shared libraries that FOLDER/memplan and FOLDER/bin/* need into FOLDER/lib, so that the folder runs where none is installed.
#
#   scripts/bundle-libs.sh FOLDER
#
# Left out, because they belong to the system that it will run on: libc's own and its loader; NVIDIA's driver, CUDA's
# toolkit and cuDNN. gnuplot, which `memplan plot` calls, is a program and stays outside too.
set -eu
folder=${1:?usage: scripts/bundle-libs.sh FOLDER}
system='^(ld-linux.*|libc|libm|libdl|librt|libpthread|libutil|libresolv|libanl)\.so'
vendor='^(libcuda|libcudart|libcudnn.*|libcublas.*|libnvrtc.*|libnvidia.*)\.so'
for program in "$folder/memplan" "$folder"/bin/*; do
    [ ! -x "$program" ] || LD_LIBRARY_PATH='' ldd "$program"
done | sort -u | awk '$2 == "=>" { print $1, $3 }' | while read -r name path; do
    if [ "$path" = not ]; then
        echo "bundle: $name is not installed" >&2
        exit 1
    fi
    if ! printf '%s\n' "$name" | grep -qE "$system|$vendor"; then
        cp -L "$path" "$folder/lib/$name"
    fi
done
echo "bundle: $folder: memplan and $(find "$folder/lib" -type f | wc -l) libraries, $(du -sm "$folder" | cut -f1) MB"
