import { join, relative } from 'node:path'
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild'

const projectDir = join(import.meta.dirname, '..')

/**
 * Lambda hands credentials to a function in its environment. The SDK's own chain looks in nine places and brings the
 * clients of two more services for it: a quarter of the bundle.
 */
export const environmentCredentials: Plugin = {
  name: 'environment-credentials',
  setup(builder) {
    const filter = /^@aws-sdk\/credential-provider-node$/
    builder.onResolve({ filter }, ({ path }) => ({ path, namespace: 'environment' }))
    builder.onLoad({ filter: /./, namespace: 'environment' }, () => ({
      contents: `export { fromEnv as defaultProvider } from '@aws-sdk/credential-provider-env'`,
      resolveDir: projectDir,
    }))
  },
}

/** How functions are bundled. `version`: what their code will say that it is; else what the package says. */
const settingsFor = (version: string | undefined) =>
  ({
    absWorkingDir: projectDir,
    bundle: true,
    minify: true,
    // Error names and log lines stay readable.
    keepNames: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    // The SDK imports node:http when it first calls: as an ES module that loads all of fetch with it, 15 ms long.
    supported: { 'dynamic-import': false },
    mainFields: ['module', 'main'],
    // CommonJS inside of an ES module; the long name is not one that minifying makes.
    banner: {
      js: `import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);`,
    },
    plugins: [environmentCredentials],
    legalComments: 'none',
    logLevel: 'warning',
    ...(version !== undefined && { define: { releasedVersion: JSON.stringify(version) } }),
  }) satisfies BuildOptions

/** A bundled function. */
export interface Bundle {
  path: string
  bytes: number
  metafile: Metafile
}

/** Bundles `functions/<name>.ts` into one file, `dist/bundles/<name>.mjs`, as the deployment ships it. */
export async function bundle(name: string): Promise<Bundle> {
  const path = join(projectDir, 'dist/bundles', `${name}.mjs`)
  const entryPoints = [`functions/${name}.ts`]
  const { metafile } = await build({ ...settingsFor(undefined), entryPoints, outfile: path, metafile: true })
  const [output] = Object.values(metafile.outputs)
  return { path, bytes: output?.bytes ?? 0, metafile }
}

/**
 * Bundles functions at once, which reads what they share once; name → program. Nothing is written. `version`: that of a release;
 * undefined for a deployment. What `changes` do to the code comes first: tests make releases that fail.
 */
export async function bundleAll(
  names: readonly string[],
  version: string | undefined,
  changes: readonly Plugin[] = [],
): Promise<Map<string, Uint8Array>> {
  const outdir = join(projectDir, 'dist/bundles')
  const entryPoints = names.map((name) => ({ in: `functions/${name}.ts`, out: name }))
  const settings = settingsFor(version)
  const plugins = [...changes, ...settings.plugins]
  const { outputFiles } = await build({ ...settings, plugins, entryPoints, outdir, write: false })
  return new Map(outputFiles.map(({ path, contents }) => [relative(outdir, path).replace(/\.js$/, ''), contents]))
}
