# Run by sh -eu in an empty directory; everything has a time that is long past.
mkdir -p src/d/deep src/newdir/sub src/emptydir src/modes src/cache dst/d/deep dst/modes dst/extradir/sub dst/cache
mkdir dst2 into other
for side in src dst; do
    echo same >$side/same
    echo same >$side/d/same
    echo same >$side/d/deep/same
    ln -s same $side/link
    mkfifo -m 640 $side/pipe
    echo linked >$side/h1; ln $side/h1 $side/h2; ln $side/h1 $side/d/h3
    mkdir $side/times
    for name in other second two nanosecond; do echo time >$side/times/$name; done
    echo mode >$side/modes/file; echo mode >$side/modes/set; echo owner >$side/modes/owner; echo group >$side/modes/group
    mkdir $side/modes/directory
    echo attribute >$side/attribute; echo attribute >$side/noattribute; echo list >$side/list; mkdir $side/listed
    echo object >$side/d/b.o; echo object >$side/old.o
    truncate -s 1M $side/hole
done
# What only the source has.
echo new >src/new; : >src/empty; echo new >src/d/new; echo deep >src/d/deep/new; echo x >src/newdir/x
echo y >src/newdir/sub/y; ln -s new src/newlink; ln -s nowhere src/dangling; ln -s d src/todir; mkfifo src/newpipe
ln -s new src/newdir/sub/link; ln src/h1 src/newdir/h4; echo twice >src/t1; ln src/t1 src/t2
truncate -s 2M src/newhole; echo object >src/a.o; echo object >src/newdir/c.o; echo hidden >src/.hidden
echo cache >src/cache/file; echo core >src/core; echo tilde >'src/a b'; echo "line
feed" >'src/line
feed'; echo star >'src/*star'; echo back >'src/back\slash'; echo q >'src/q?'; echo bracket >'src/[ab]'
printf 'two\0three' >src/zero; chmod 4755 src/new; chmod 2750 src/newdir; chmod 1777 src/emptydir; chmod 400 src/empty
# What only the destination has.
echo extra >dst/extra; echo extra >dst/extra.o; echo extra >dst/extradir/x; echo extra >dst/extradir/y.o
echo extra >dst/extradir/sub/z; echo extra >dst/d/extra; echo extra >dst/d/deep/extra; mkdir dst/extraempty
ln -s extra dst/extralink; mkfifo dst/extrapipe; echo extra >dst/cache/old; echo extra >dst/.extrahidden
# What differs.
echo 'newer here' >src/newer; echo 'older' >dst/newer
echo 'older' >src/older; echo 'newer there' >dst/older
echo longer than >src/size; echo shorter >dst/size
echo 'another size' >src/times/fraction; echo time >dst/times/fraction
echo abcd >src/content; echo abcD >dst/content
echo abcd >src/sametime; echo abcd >dst/sametime
ln -s here src/changedlink; ln -s there dst/changedlink
echo apart >src/apart1; ln src/apart1 src/apart2; echo apart >dst/apart1; echo apart >dst/apart2
chmod 640 src/modes/file; chmod 600 dst/modes/file; chmod 6755 src/modes/set; chmod 755 dst/modes/set
chmod 700 src/modes/directory; chmod 755 dst/modes/directory; chmod 750 src/modes
if [ "$(id -u)" = 0 ]; then chown 1:0 src/modes/owner; chown 0:1 src/modes/group; chown 12345:2 src/newdir/x; fi
# New entries get the group of a directory, or not. The owner may not list his own directory.
mkdir src/inherits dst/inherits src/passes dst/passes; echo new >src/inherits/new; echo new >src/passes/new
if [ "$(id -u)" = 0 ]; then chgrp 3 dst/inherits dst/passes; fi
chmod 2755 src/inherits dst/passes
if [ "$(id -u)" != 0 ]; then
    mkdir src/closed dst/closed; echo new >src/closed/new; echo same >src/closed/same; echo same >dst/closed/same
    echo extra >dst/closed/extra; chmod 300 dst/closed
fi
setfattr -n user.a -v 1 src/attribute; setfattr -n user.b -v 2 dst/noattribute; setfattr -n user.a -v 0 dst/attribute
setfattr -n user.n -v 1 src/d/new; setfattr -n user.d -v 1 src/listed
setfacl -m u:1:rw,g:2:r src/list; setfacl -m u:3:r dst/list; setfacl -d -m u:1:rwx,g::rx src/listed
setfacl -m u:1:r src/newdir/x
# What is of another kind, in places of its own: rsync makes no way for a file where a directory is not empty, unless it
# deletes.
mkdir from to
echo file >from/file-dir; mkdir -p to/file-dir/sub; echo in >to/file-dir/sub/in
echo file >from/file-emptydir; mkdir to/file-emptydir
mkdir from/dir-file; echo in >from/dir-file/in; echo file >to/dir-file
echo file >from/file-link; ln -s same to/file-link
ln -s same from/link-file; echo file >to/link-file
ln -s same from/link-dir; mkdir to/link-dir; echo in >to/link-dir/in
ln -s same from/link-emptydir; mkdir to/link-emptydir
mkdir from/dir-link; echo in >from/dir-link/in; ln -s ../dst2 to/dir-link
mkdir from/emptydir-file; echo file >to/emptydir-file
mkfifo from/pipe-file; echo file >to/pipe-file; echo file >from/file-pipe; mkfifo to/file-pipe
mkdir from/dir-pipe; mkfifo to/dir-pipe; mkfifo from/pipe-dir; mkdir to/pipe-dir; echo in >to/pipe-dir/in
# Around them.
ln -s dst2 todst; echo one >one; echo two >two; echo 'one of old' >into/one; echo three >other/three; ln -s one toone
echo four >other/one; ln -s nowhere dangling
printf 'same\nd/new\nnewdir\nmissing\n# not a comment\n' >files
printf 'd/new\0newdir/sub/y\0' >files0
printf '*.o\n# a comment\n\n/d/deep\n' >excludes
printf -- '+ *.o\n- /newdir\n' >rules
printf 'extra*\n' >protected
# Times: those of the same second are told by nanoseconds, if at all.
find src dst from to dst2 into other one two -exec touch -h -d 2020-01-01T00:00:00.5Z {} +
touch -d 2021-01-01Z src/newer dst/older src/times/other
touch -d 2020-01-01T00:00:01.5Z src/times/second; touch -d 2020-01-01T00:00:02.5Z src/times/two
touch -d 2020-01-01T00:00:00.7Z src/times/nanosecond
touch -d 2020-01-01T00:00:00Z src/times/fraction; touch -d 2020-01-01T00:00:00.5Z dst/times/fraction
touch -d 2019-06-01Z src/d src/newdir src/emptydir; touch -h -d 2018-01-01Z src/newlink src/changedlink src/newpipe
printf -- '- *.o\n+ same\n- new\n' >src/.rules; echo '*.o' >src/.ignore; printf -- '- x\n' >src/newdir/.rules
printf -- '- /deep\n' >src/d/.rsync-filter; touch -d 2020-01-01Z src/.rules src/.ignore src/*/.r*; touch -d 2019-06-01Z src src/d
