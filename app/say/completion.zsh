_dbo() {
    local program=$words[1] flags names files
    _dbo_find "${(@)words[2,CURRENT-1]}"
    [[ $PREFIX == -* ]] && names=$flags files=''
    compadd -- ${=names}
    [[ -n $files ]] && _files
}
_dbo "$@"
