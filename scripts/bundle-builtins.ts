import { isBuiltin } from 'node:module'
import { type DynamicImport, parseSync, type StaticImport } from 'oxc-parser'

/**
 * A program in which Node's own modules are taken as CommonJS takes them: to hand one out as an ES module all of its members
 * are evaluated, and those of node:http load the whole of `fetch`, 12 ms long.
 */
export function requireBuiltins(text: string): string {
  const { staticImports, dynamicImports } = parseSync('program.mjs', text).module
  const own = staticImports.filter(({ moduleRequest }) => isBuiltin(moduleRequest.value))
  const ownLate = dynamicImports.filter((found) => isBuiltin(nameOf(found, text)))
  const edits = [
    ...own.map((found) => ({ start: found.start, end: found.end, words: taken(found) })),
    ...ownLate.map((found) => ({ start: found.start, end: found.end, words: takenLate(nameOf(found, text)) })),
  ]
  return edits
    .toSorted((one, other) => other.start - one.start)
    .reduce((whole, { start, end, words }) => whole.slice(0, start) + words + whole.slice(end), text)
}

const builtin = (name: string): string => `process.getBuiltinModule(${JSON.stringify(name)})`

/** `import a, { b as c } from 'x'` in other words. */
function taken({ entries, moduleRequest }: StaticImport): string {
  const module = builtin(moduleRequest.value)
  // Neither the default nor a namespace has a name; both are the whole module, and so is `{ default as a }`.
  const targets = entries.map(({ importName, localName }) =>
    importName.name !== null && importName.name !== 'default'
      ? `{${JSON.stringify(importName.name)}:${localName.value}}`
      : localName.value,
  )
  return targets.map((target) => `const ${target}=${module};`).join('')
}

/** `import('x')` in other words: what it promises has a default, which is the whole module, and the members of that. */
const takenLate = (name: string): string => `Promise.resolve({__proto__:${builtin(name)},default:${builtin(name)}})`

/** What a late import asks for; '' where that is worked out first. */
const nameOf = ({ moduleRequest: { start, end } }: DynamicImport, text: string): string =>
  /^(["'`])([^"'`$]+)\1$/.exec(text.slice(start, end))?.[2] ?? ''
