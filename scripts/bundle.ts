import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { build, type BuildOptions, type BuildResult, type Metafile, type Plugin } from 'esbuild'
import { requireBuiltins } from './bundle-builtins.ts'
import { plugins } from './bundle-plugins.ts'
import { root } from './source.ts'

const entryFile = 'index.mjs'
const outdir = 'dist/bundles'

/** How functions are bundled: without a trace of where and when. */
const settings = {
  absWorkingDir: root,
  bundle: true,
  minify: true,
  // Error names and log lines stay readable.
  keepNames: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  mainFields: ['module', 'main'],
  // CommonJS inside of an ES module.
  banner: { js: `const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);` },
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  write: false,
  outdir,
  outExtension: { '.js': '.mjs' },
  chunkNames: '[name]-[hash]',
} satisfies BuildOptions

/** A bundled function: its files by name. `index.mjs` exports the handler, and loads what is beside it. */
export interface Bundle {
  files: Map<string, Uint8Array>
  /** Names of the files that are loaded before the handler is there; the others are when something needs them. */
  initial: string[]
  /** What the initial files hold: path of a source → how many bytes are left of it. */
  sources: Map<string, number>
}

/** Bundles `functions/<name>.ts` as the deployment ships it, and writes it to `dist/bundles/<name>`; `path` is its program. */
export async function bundle(name: string): Promise<Bundle & { path: string }> {
  const made = (await bundleAll([name], undefined)).get(name)
  if (made === undefined) throw new Error(`There is no function ${name}.`)
  const folder = join(root, outdir, name)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  for (const [file, content] of made.files) await writeFile(join(folder, file), content)
  return { ...made, path: join(folder, entryFile) }
}

/**
 * Bundles functions, by name, in memory. Functions with lazily loaded code are bundled one by one, so that the code of
 * other functions does not affect their chunks. `version`: the version that the code reports; default: that of the
 * package. `changes` are plugins that run first: tests use them to build releases that fail.
 */
export async function bundleAll(
  names: readonly string[],
  version: string | undefined,
  changes: readonly Plugin[] = [],
): Promise<Map<string, Bundle>> {
  const all = {
    ...settings,
    plugins: [...changes, ...plugins()],
    ...(version !== undefined && { define: { releasedVersion: JSON.stringify(version) } }),
  }
  const entryPoints = names.map((name) => ({ in: `functions/${name}.ts`, out: name }))
  const together = await build({ ...all, entryPoints })
  const bundles = names.map(async (name) => {
    if (!loadsLate(together.metafile, name)) return [name, bundleOf(together, `${name}.mjs`)] as const
    const entry = { in: `functions/${name}.ts`, out: 'index' }
    return [name, bundleOf(await build({ ...all, splitting: true, entryPoints: [entry] }), entryFile)] as const
  })
  return new Map(await Promise.all(bundles))
}

/** Whether a function, or something that it imports, imports code of the platform or a package late. */
function loadsLate({ inputs, outputs }: Metafile, name: string): boolean {
  const { inputs: held = {} } = outputs[`${outdir}/${name}.mjs`] ?? {}
  return Object.entries(held).some(
    ([path, { bytesInOutput }]) =>
      bytesInOutput > 0 &&
      inputs[path]?.imports.some(
        ({ kind, external, path: target }) =>
          kind === 'dynamic-import' && !external && (held[target]?.bytesInOutput ?? 0) > 0,
      ),
  )
}

/** What of a build belongs to one program of it: whatever it may ever load. */
function bundleOf({ outputFiles, metafile }: BuildResult<typeof settings>, program: string): Bundle {
  const entry = `${outdir}/${program}`
  const { outputs } = metafile
  const reached = reach(entry, (path) => (outputs[path]?.imports ?? []).filter(({ external }) => !external))
  const initial = reach(entry, (path) =>
    (outputs[path]?.imports ?? []).filter(({ kind, external }) => !external && kind === 'import-statement'),
  )
  const texts = new Map(outputFiles.map(({ path, text }) => [relative(root, path), text]))
  const contentOf = (path: string) => Buffer.from(requireBuiltins(texts.get(path) ?? ''))
  const nameOf = (path: string) => (path === entry ? entryFile : basename(path))
  const sources = new Map<string, number>()
  for (const path of initial) {
    for (const [source, { bytesInOutput }] of Object.entries(outputs[path]?.inputs ?? {})) {
      sources.set(source, (sources.get(source) ?? 0) + bytesInOutput)
    }
  }
  return {
    files: new Map([...reached].map((path) => [nameOf(path), contentOf(path)])),
    initial: [...initial].map(nameOf),
    sources,
  }
}

/** A node and all that leads from it. */
function reach(from: string, next: (path: string) => { path: string }[]): Set<string> {
  const reached = new Set([from])
  for (const path of reached) for (const { path: further } of next(path)) reached.add(further)
  return reached
}
