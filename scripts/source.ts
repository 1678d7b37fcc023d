import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type ImportOrExportKind, parseSync, type Statement, Visitor } from 'oxc-parser'

/** A file of the repository, by its path from the root. */
export interface Source {
  path: string
  text: string
}

/** One place where a file names another module. */
export interface Reference {
  specifier: string
  /** Leaves nothing at run time: `import type`. An `import { type … }` still loads the module. */
  isTypeOnly: boolean
  line: number
}

/** The root of the repository, with a slash at its end. */
export const root = fileURLToPath(new URL('../', import.meta.url))

/** Every file that is committed or could be. */
export const sources = (): Source[] =>
  execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
    .flatMap((path) => readSource(path))

// A file that was deleted a moment ago may still be listed.
function readSource(path: string): Source[] {
  try {
    return [{ path, text: readFileSync(root + path, 'utf8') }]
  } catch {
    return []
  }
}

/** Whether a file is TypeScript: what the rules about code look at. */
export const isCode = ({ path }: Source): boolean => /\.tsx?$/.test(path)

/** Everything that a file imports, or exports from elsewhere. */
export function referencesOf({ path, text }: Source): Reference[] {
  const found: Reference[] = []
  const add = (start: number, specifier: string, kind: ImportOrExportKind | undefined): void => {
    found.push({ specifier, isTypeOnly: kind === 'type', line: text.slice(0, start).split('\n').length })
  }
  new Visitor({
    ImportDeclaration: ({ start, source, importKind }) => add(start, source.value, importKind),
    ExportNamedDeclaration: ({ start, source, exportKind }) => source && add(start, source.value, exportKind),
    ExportAllDeclaration: ({ start, source, exportKind }) => add(start, source.value, exportKind),
    ImportExpression: ({ start, source }) => source.type === 'Literal' && add(start, String(source.value), 'value'),
  }).visit(parseSync(path, text).program)
  return found
}

const handsOn = (statement: Statement): boolean =>
  statement.type === 'ExportAllDeclaration' ||
  (statement.type === 'ExportNamedDeclaration' && statement.source !== null)

/** Whether a file does nothing but hand on what others export, or hands on all of another file. */
export function isBarrel({ path, text }: Source): boolean {
  const { body } = parseSync(path, text).program
  const handsOnAll = body.some((statement) => statement.type === 'ExportAllDeclaration' && statement.exported === null)
  return handsOnAll || (body.length > 0 && body.every(handsOn))
}

/** Prints what was found and makes the process fail when it was anything. */
export function report(violations: readonly string[]): void {
  for (const violation of violations) console.error(violation)
  if (violations.length > 0) process.exitCode = 1
}
