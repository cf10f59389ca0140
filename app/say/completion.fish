# __dbo_at COMMAND [TEST NUMBER]: the words before the one to complete have this command, and so many
# arguments of it. Before any command COMMAND is empty.
function __dbo_at
    set -l words (commandline -opc)
    set -l command ''
    set -l place 0
    set -l last
    for word in $words[2..-1]
        if set -q last[1]
            set -e last
            continue
        end
        set -l valued __dbo_valued_$command
        switch $word
            case '-*'
                contains -- $word $$valued
                and set last $word
            case '*'
                if test -n "$command"
                    set place (math $place + 1)
                else
                    set command $word
                end
        end
    end
    test "$command" = "$argv[1]"
    and begin
        not set -q argv[2]
        or test $place $argv[2] $argv[3]
    end
end
function __dbo_scripts
    set -l words (commandline -opc)
    $words[1] scripts --names 2>/dev/null
end
complete -c dbo -f
