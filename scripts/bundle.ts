import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { type BuildOptions, type BuildResult, context, type Plugin } from 'esbuild'
import { requireBuiltins } from './bundle-builtins.ts'
import { plugins } from './bundle-plugins.ts'
import { root } from './source.ts'

const entryFile = 'index.mjs'
const outdir = 'dist/bundles'

/** Options that give the same bytes for the same sources. */
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
  // CommonJS packages inside the ES module call `require`.
  banner: { js: `const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);` },
  legalComments: 'none',
  logLevel: 'warning',
  metafile: true,
  write: false,
  outdir,
  outExtension: { '.js': '.mjs' },
  chunkNames: '[name]-[hash]',
} satisfies BuildOptions

export interface Bundle {
  /** File name → content. `index.mjs` exports the handler. */
  files: Map<string, Uint8Array>
  /** Files that are loaded before the handler is exported; the others are loaded on demand. */
  initial: string[]
  /** Path of a source → its size in bytes in the initial files. */
  sources: Map<string, number>
}

/** Bundles `functions/<name>.ts` as deployed and writes it to `dist/bundles/<name>`; `path` is its `index.mjs`. */
export async function bundle(name: string): Promise<Bundle & { path: string }> {
  const builtBundle = (await bundleAll([name], undefined)).get(name)
  if (builtBundle === undefined) throw new Error(`${name} is not a function.`)
  const folder = join(root, outdir, name)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  for (const [file, content] of builtBundle.files) await writeFile(join(folder, file), content)
  return { ...builtBundle, path: join(folder, entryFile) }
}

/**
 * Bundles functions in memory and returns them by name. Each function has a build of its own, so that the code of other
 * functions does not affect its chunks. The code reports `version`, or by default the version of the package. The
 * plugins `changes` run before those of the platform: tests use them to build releases that fail.
 */
export async function bundleAll(
  names: readonly string[],
  version: string | undefined,
  changes: readonly Plugin[] = [],
): Promise<Map<string, Bundle>> {
  let name = ''
  const entry: Plugin = {
    name: 'entry',
    setup: (builder) => builder.onResolve({ filter: /^function$/ }, () => ({ path: `${root}functions/${name}.ts` })),
  }
  const options = {
    ...settings,
    entryPoints: [{ in: 'function', out: 'index' }],
    plugins: [entry, ...changes, ...plugins()],
    ...(version !== undefined && { define: { releasedVersion: JSON.stringify(version) } }),
  }
  await using contexts = new AsyncDisposableStack()
  // The builds of a context parse each file once.
  const contextOf = async (splitting: boolean) =>
    contexts.adopt(await context({ ...options, splitting }), (each) => each.dispose())
  const [split, whole] = await Promise.all([contextOf(true), contextOf(false)])
  const bundles = new Map<string, Bundle>()
  for (name of names) {
    const bundle = bundleOf(await split.rebuild())
    // Without lazily loaded code, one file loads faster than several.
    const isLazy = bundle.files.size > bundle.initial.length
    bundles.set(name, isLazy ? bundle : bundleOf(await whole.rebuild()))
  }
  return bundles
}

/** Returns the files that a function can load, and their sources. */
function bundleOf({ outputFiles, metafile }: BuildResult<typeof settings>): Bundle {
  const entry = `${outdir}/${entryFile}`
  const { outputs } = metafile
  const reached = reachableFrom(entry, (path) => (outputs[path]?.imports ?? []).filter(({ external }) => !external))
  const initial = reachableFrom(entry, (path) =>
    (outputs[path]?.imports ?? []).filter(({ kind, external }) => !external && kind === 'import-statement'),
  )
  const texts = new Map(outputFiles.map(({ path, text }) => [relative(root, path), text]))
  const contentOf = (path: string) => Buffer.from(requireBuiltins(texts.get(path) ?? ''))
  const sources = new Map<string, number>()
  for (const path of initial) {
    for (const [source, { bytesInOutput }] of Object.entries(outputs[path]?.inputs ?? {})) {
      sources.set(source, (sources.get(source) ?? 0) + bytesInOutput)
    }
  }
  return {
    files: new Map([...reached].map((path) => [basename(path), contentOf(path)])),
    initial: [...initial].map((path) => basename(path)),
    sources,
  }
}

function reachableFrom(start: string, next: (path: string) => { path: string }[]): Set<string> {
  const reached = new Set([start])
  for (const path of reached) for (const { path: further } of next(path)) reached.add(further)
  return reached
}
