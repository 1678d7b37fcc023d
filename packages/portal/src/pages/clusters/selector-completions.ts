import type { Completion } from '../../ui/completion.ts'

interface KnownValue {
  value: string
  clusterCount: number
  /** The name of the object whose id is the value, for example of a site. */
  name?: string | undefined
}

export interface KnownLabel {
  key: string
  clusterCount: number
  values: readonly KnownValue[]
}

const word = '[^\\s,!=()]'
const wordAtEnd = new RegExp(`${word}*$`)
const key = new RegExp(`^\\s*!?\\s*${word}*$`)
const keyWithOperator = new RegExp(`^\\s*(${word}+)\\s*(?:==?|!=)\\s*$`)
const keyWithSet = new RegExp(`(${word}+)\\s+(?:in|notin)\\s*\\((?:[^()]*,)?\\s*$`)

export const labelText = (name: string, value: string): string => (value === '' ? name : `${name}=${value}`)

export const clusterCountText = (count: number): string =>
  count === 1 ? '1 cluster' : `${count.toLocaleString('en')} clusters`

/** Returns the completions of the last key or value of a selector. */
export function selectorCompletions(text: string, knownLabels: readonly KnownLabel[]): Completion[] {
  const lastWord = wordAtEnd.exec(text)?.[0] ?? ''
  const before = text.slice(0, text.length - lastWord.length)
  const requirement = before.slice(before.lastIndexOf(',') + 1)
  const keyOfValue = keyWithSet.exec(before)?.[1] ?? keyWithOperator.exec(requirement)?.[1]
  if (keyOfValue !== undefined) return valueCompletions(before, keyOfValue, lastWord, knownLabels)
  if (!key.test(requirement + lastWord)) return []
  const completions = keyCompletions(before, lastWord, knownLabels)
  if (requirement.includes('!')) return completions
  // A complete key also offers its values.
  const values = valueCompletions(`${before}${lastWord}=`, lastWord, '', knownLabels)
  return [...completions, ...values.map((each) => ({ ...each, label: `${lastWord}=${each.label}` }))]
}

export const keyCompletions = (before: string, prefix: string, knownLabels: readonly KnownLabel[]): Completion[] =>
  knownLabels
    .filter((each) => each.key.startsWith(prefix))
    .map((each) => ({ text: before + each.key, label: each.key, hint: clusterCountText(each.clusterCount) }))

export function valueCompletions(
  before: string,
  ofKey: string,
  prefix: string,
  knownLabels: readonly KnownLabel[],
): Completion[] {
  const values = knownLabels.find((each) => each.key === ofKey)?.values ?? []
  const isMatch = ({ value, name = '' }: KnownValue) =>
    value !== '' && (value.startsWith(prefix) || name.toLowerCase().startsWith(prefix.toLowerCase()))
  return values.filter(isMatch).map(({ value, name, clusterCount }) => ({
    text: before + value,
    label: name ?? value,
    hint: clusterCountText(clusterCount),
  }))
}
