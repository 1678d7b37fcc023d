import { type Place, quoted, type Word } from './tree.ts'

export const zshScript = (places: readonly Place[]): string => `\
#compdef plat
# Completion of plat for zsh. Load it with: source <(plat completion zsh)
_plat() {
  local at=plat word
  local -a next
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      (${places
        .slice(1)
        .map(({ path }) => quoted(path))
        .join('|')}) at="$at $word" ;;
    esac
  done
  case "$at $words[CURRENT-1]" in
${places.flatMap(choicesOf).join('\n')}
    (*)
      case "$at" in
${places.map(({ path, words }) => `        (${quoted(path)}) next=(${words.map(wordWithDescription).join(' ')}) ;;`).join('\n')}
      esac
      ;;
  esac
  _describe -t words plat next || _files
}
compdef _plat plat
`

const choicesOf = ({ path, choices }: Place): string[] =>
  choices.map(({ option, values }) => `    (${quoted(`${path} ${option}`)}) next=(${values.map(quoted).join(' ')}) ;;`)

const wordWithDescription = ({ text, meaning }: Word): string => quoted(`${text}:${meaning.replaceAll(':', '\\:')}`)
