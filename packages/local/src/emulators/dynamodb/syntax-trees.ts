import { BoundedCache } from '@platform/core/lib/bounded-cache'

/** Keeps the syntax trees of expressions, because parsing takes a fifth of the time of the emulators' thread. */

interface Context {
  attrNames?: Record<string, string>
  attrVals?: Record<string, Record<string, unknown>>
  unusedAttrNames: Record<string, true>
  unusedAttrVals: Record<string, true>
}

/** Returns a syntax tree, or the message of an error. */
type Parse = (text: string, options: { context: Context }) => unknown

/** The parser checks the values of the operands of these, and only the types of all other operands. */
const valueDependentPattern = /between|attribute_type/i

const maxTrees = 1000

/** Stands for a value in a kept tree; each use of the tree replaces it by its own value. */
class ValueName {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

/** Replaces the function `parse` of a parser of dynalite by one that parses equal expressions once. */
export function keepTrees(parser: { parse: Parse }): void {
  const { parse } = parser
  const trees = new BoundedCache<unknown>(maxTrees)
  parser.parse = (text, options) => {
    const { attrNames = {}, attrVals = {}, unusedAttrNames, unusedAttrVals } = options.context
    const names = text.match(/[#:]\w+/g) ?? []
    const operands = names.map((name) => (name.startsWith('#') ? attrNames[name] : Object.keys(attrVals[name] ?? {})))
    const key = JSON.stringify([text, operands])
    const keptTree = trees.get(key)
    if (keptTree !== undefined) {
      for (const name of names) {
        delete unusedAttrNames[name]
        delete unusedAttrVals[name]
      }
      return copyOf(keptTree, (node) => (node instanceof ValueName ? attrVals[node.name] : undefined))
    }
    const tree = parse(text, options)
    const nameOf = new Map(
      names.flatMap((name) => (attrVals[name] ? [[attrVals[name] as unknown, name] as const] : [])),
    )
    const valueNames = new Set(names.filter((name) => name.startsWith(':')))
    // Two names with the same object could not be distinguished.
    const isKept = typeof tree !== 'string' && !valueDependentPattern.test(text) && nameOf.size === valueNames.size
    if (isKept) {
      const valueName = (node: unknown) => (nameOf.has(node) ? new ValueName(nameOf.get(node) ?? '') : undefined)
      trees.set(key, copyOf(tree, valueName))
    }
    return tree
  }
}

/** Copies a tree, except for the nodes for which `replacementOf` returns a replacement. */
function copyOf(node: unknown, replacementOf: (node: unknown) => unknown): unknown {
  if (typeof node !== 'object' || node === null) return node
  const replacement = replacementOf(node)
  if (replacement !== undefined) return replacement
  if (Array.isArray(node)) return node.map((each) => copyOf(each, replacementOf))
  const entries = Object.entries(node).map(([name, value]) => [name, copyOf(value, replacementOf)])
  return Object.assign(Object.create(Object.getPrototypeOf(node)), Object.fromEntries(entries))
}
