import { type CommandCompletions, contextNamesCommand, quote } from './tree.ts'

export const fishScript = (completions: readonly CommandCompletions[]): string => `\
# Completion of plat for fish. Load it with: plat completion fish | source
function __plat_at --description 'Whether the command line is at this command of plat'
  set -l at plat
  set -l typed (commandline -opc)
  for word in $typed[2..-1]
    if contains -- "$at $word" ${completions
      .slice(1)
      .map(({ path }) => quote(path))
      .join(' ')}
      set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
${completions.flatMap(linesOf).join('\n')}
`

function linesOf({ path, words, choices, hasContexts }: CommandCompletions): string[] {
  const completePrefix = `complete -c plat -n ${quote(`__plat_at "${path}"`)}`
  const lines = words.map(({ text, description }) => {
    const namedText = choices.find(({ option }) => option === text)?.values.join(' ')
    const values = text === '--context' ? `(${contextNamesCommand})` : namedText
    const word = text.startsWith('--') ? `-l ${text.slice(2)}` : `-f -a ${text}`
    return `${completePrefix} ${word}${values === undefined ? '' : ` -x -a ${quote(values)}`} -d ${quote(description)}`
  })
  return hasContexts ? [...lines, `${completePrefix} -f -a ${quote(`(${contextNamesCommand})`)}`] : lines
}
