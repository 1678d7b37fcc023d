import { type CommandCompletions, contextNamesCommand, quote, type Word } from './tree.ts'

export const zshScript = (completions: readonly CommandCompletions[]): string => `\
#compdef plat
# Completion of plat for zsh. Load it with: source <(plat completion zsh)
_plat() {
  local at=plat word
  local -a next
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      (${completions
        .slice(1)
        .map(({ path }) => quote(path))
        .join('|')}) at="$at $word" ;;
    esac
  done
  case "$at $words[CURRENT-1]" in
    (*' --context') next=(\${(f)"$(${contextNamesCommand})"}) ;;
${completions.flatMap(choiceLines).join('\n')}
    (*)
      case "$at" in
${completions.map(({ path, words, hasContexts }) => `        (${quote(path)}) next=(${words.map(wordWithDescription).join(' ')}${hasContexts ? ` \${(f)"$(${contextNamesCommand})"}` : ''}) ;;`).join('\n')}
      esac
      ;;
  esac
  _describe -t words plat next || _files
}
compdef _plat plat
`

const choiceLines = ({ path, choices }: CommandCompletions): string[] =>
  choices.map(({ option, values }) => `    (${quote(`${path} ${option}`)}) next=(${values.map(quote).join(' ')}) ;;`)

const wordWithDescription = ({ text, description }: Word): string =>
  quote(`${text}:${description.replaceAll(':', '\\:')}`)
