import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import * as z from 'zod'

const banner = [
  `import { createRequire as createRequireOfProgram } from 'node:module'`,
  `const require = createRequireOfProgram(import.meta.url)`,
  `const __filename = import.meta.filename, __dirname = import.meta.dirname`,
].join('\n')

/** Packages that the SST components provide at run time; they are not bundled. */
const external = ['@pulumi/*', '@pulumiverse/*', '@aws-sdk/*', 'undici', 'esbuild', 'archiver', 'glob', 'vite']

const Lock = z.array(z.object({ alias: z.string(), package: z.string() }))

export interface ProjectFolders {
  projectDir: string
  platformDir: string
  /** Folder where components write archives of functions. The archives have the same names in all stages. */
  workDir: string
  stage: string
}

export const App = z.object({
  name: z.string(),
  home: z.string(),
  removal: z.string().default('retain'),
  protect: z.boolean().default(false),
  providers: z.record(z.string(), z.unknown()).default({}),
})
export type App = z.infer<typeof App>

export async function bundleApp({ projectDir, platformDir, stage }: ProjectFolders): Promise<string> {
  const outfile = join(platformDir, `app-${stage}-${process.pid}.mjs`)
  await build({
    entryPoints: [join(projectDir, 'sst.config.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    external: ['./infra/*'],
    banner: { js: 'const $config = (config) => config' },
    logLevel: 'error',
  })
  return outfile
}

export async function bundleProgram(
  { projectDir, platformDir, workDir, stage }: ProjectFolders,
  app: App,
): Promise<string> {
  const outfile = join(platformDir, `program-${stage}-${process.pid}.mjs`)
  const lock = Lock.parse(JSON.parse(await readFile(join(projectDir, '.sst/provider-lock.json'), 'utf8')))
  const paths = { home: projectDir, root: projectDir, work: workDir, platform: platformDir }
  await build({
    stdin: {
      contents: [
        `export * as pulumi from '@pulumi/pulumi'`,
        `export { run } from '${platformDir}/src/auto/run.ts'`,
        `export { default as config } from '${projectDir}/sst.config.ts'`,
      ].join('\n'),
      resolveDir: projectDir,
      loader: 'ts',
    },
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    mainFields: ['module', 'main'],
    external,
    nodePaths: [join(platformDir, 'node_modules')],
    plugins: [withGlobals(projectDir, platformDir, lock)],
    inject: [join(platformDir, 'src/shim/run.js')],
    banner: { js: banner },
    define: {
      $app: JSON.stringify({ ...app, stage }),
      $cli: JSON.stringify({ command: 'diff', dev: false, paths, state: { version: {} } }),
      $dev: 'false',
    },
    logLevel: 'error',
  })
  return outfile
}

const isBelow = (folder: string, path: string) => path.startsWith(folder) && !path.includes('/node_modules/')

/** SST makes providers and components global in every file of the project. */
const withGlobals = (projectDir: string, platformDir: string, lock: z.infer<typeof Lock>): Plugin => ({
  name: 'globals',
  setup: (builder) => {
    const imports = [
      ...lock.map(({ alias, package: from }) => `import * as ${alias} from '${from}'`),
      `import * as sst from '${platformDir}/src/components'`,
    ].join('\n')
    builder.onLoad({ filter: /\.ts$/ }, async ({ path }) =>
      isBelow(projectDir, path) && !isBelow(join(projectDir, '.sst'), path)
        ? { contents: `${imports}\n${await readFile(path, 'utf8')}`, loader: 'ts' }
        : undefined,
    )
  },
})
