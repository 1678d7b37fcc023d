import { isBuiltin } from 'node:module'
import { type DynamicImport, parseSync, type StaticImport } from 'oxc-parser'

/**
 * Replaces imports of Node modules with `process.getBuiltinModule`. As an ES module, node:http would evaluate all its
 * members and load `fetch`, which is slow.
 */
export function requireBuiltins(text: string): string {
  const { staticImports, dynamicImports } = parseSync('program.mjs', text).module
  const builtinImports = staticImports.filter(({ moduleRequest }) => isBuiltin(moduleRequest.value))
  const dynamicBuiltins = dynamicImports.filter((each) => isBuiltin(specifierOf(each, text)))
  const edits = [
    ...builtinImports.map((each) => ({ start: each.start, end: each.end, code: staticAccess(each) })),
    ...dynamicBuiltins.map((each) => ({
      start: each.start,
      end: each.end,
      code: dynamicAccess(specifierOf(each, text)),
    })),
  ]
  return edits
    .toSorted((a, b) => b.start - a.start)
    .reduce((program, { start, end, code }) => program.slice(0, start) + code + program.slice(end), text)
}

const builtinAccess = (name: string): string => `process.getBuiltinModule(${JSON.stringify(name)})`

function staticAccess({ entries, moduleRequest }: StaticImport): string {
  const access = builtinAccess(moduleRequest.value)
  // The default export and the namespace are the whole module.
  const targets = entries.map(({ importName, localName }) =>
    importName.name !== null && importName.name !== 'default'
      ? `{${JSON.stringify(importName.name)}:${localName.value}}`
      : localName.value,
  )
  return targets.map((target) => `const ${target}=${access};`).join('')
}

/** Returns the code that replaces `import('x')`: a promise of the module's members, with the module as `default`. */
const dynamicAccess = (name: string): string =>
  `Promise.resolve({__proto__:${builtinAccess(name)},default:${builtinAccess(name)}})`

/** Returns an empty text if the specifier is computed. */
const specifierOf = ({ moduleRequest: { start, end } }: DynamicImport, text: string): string =>
  /^(["'`])([^"'`$]+)\1$/.exec(text.slice(start, end))?.[2] ?? ''
