_dbo() {
    local current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]}
    local flags names files
    _dbo_find "${COMP_WORDS[@]:1:COMP_CWORD-1}"
    [[ $current == '=' ]] && current=''
    [[ $current == -* ]] && names=$flags files=''
    COMPREPLY=($(compgen -W "$names" -- "$current"))
    [[ -n $files ]] && COMPREPLY+=($(compgen -f -- "$current"))
    return 0
}
complete -o filenames -F _dbo dbo
