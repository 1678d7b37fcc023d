import { type CommandCompletions, contextNamesCommand, quote } from './tree.ts'

export const bashScript = (completions: readonly CommandCompletions[]): string => `\
# Completion of plat for bash. Load it with: source <(plat completion bash)
_plat() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} at=plat words='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
      ${completions
        .slice(1)
        .map(({ path }) => quote(path))
        .join(' | ')}) at="$at $word" ;;
    esac
  done
  case "$at $previous" in
    *' --context') words=$(${contextNamesCommand}) ;;
${completions.flatMap(choicesOf).join('\n')}
    *)
      case "$at" in
${completions.map(({ path, words, hasContexts }) => `        ${quote(path)}) words=${quote(words.map(({ text }) => text).join(' '))}${hasContexts ? `" $(${contextNamesCommand})"` : ''} ;;`).join('\n')}
      esac
      ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _plat plat
`

const choicesOf = ({ path, choices }: CommandCompletions): string[] =>
  choices.map(({ option, values }) => `    ${quote(`${path} ${option}`)}) words=${quote(values.join(' '))} ;;`)
