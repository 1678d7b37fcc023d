import { isBuiltin } from 'node:module'
import { parseSync, type StaticImport } from 'oxc-parser'

/**
 * A program in which Node's own modules are taken as CommonJS takes them: to hand one out as an ES module all of its members
 * are evaluated, and those of node:http load the whole of `fetch`, 12 ms long.
 */
export function requireBuiltins(text: string): string {
  return parseSync('program.mjs', text)
    .module.staticImports.filter(({ moduleRequest }) => isBuiltin(moduleRequest.value))
    .reduceRight((whole, found) => whole.slice(0, found.start) + taken(found) + whole.slice(found.end), text)
}

/** `import a, { b as c } from 'x'` in other words. */
function taken({ entries, moduleRequest }: StaticImport): string {
  const module = `process.getBuiltinModule(${JSON.stringify(moduleRequest.value)})`
  // Neither the default nor a namespace has a name; both are the whole module, and so is `{ default as a }`.
  const targets = entries.map(({ importName, localName }) =>
    importName.name !== null && importName.name !== 'default'
      ? `{${JSON.stringify(importName.name)}:${localName.value}}`
      : localName.value,
  )
  return targets.map((target) => `const ${target}=${module};`).join('')
}
