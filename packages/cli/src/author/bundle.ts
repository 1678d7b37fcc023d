import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { ModuleDescription } from '@platform/modules/describe'
import { environmentNames } from '@platform/modules/protocol'
import { CliError, messageOf } from '../exit.ts'
import { checkout } from './checkout.ts'
import { memberOf, parseJson } from './json.ts'
import type { Project } from './project.ts'

// Identifiers are not minified, so that the same files produce the same program in any folder.
const imageOptions = { minifyWhitespace: true, minifySyntax: true, lineLimit: 200 } as const
// Source maps let stack traces show the author's source lines.
const debugOptions = ({ folder }: Project) =>
  ({ sourcemap: 'inline', sourceRoot: pathToFileURL(`${folder}/`).href }) as const

/** Bundles a module's program into one file. Throws `CliError` with the bundler's message. */
export async function bundle(
  project: Project,
  buildOptions: typeof imageOptions | ReturnType<typeof debugOptions> = imageOptions,
) {
  const { build } = await import('esbuild').catch((error: unknown) => {
    throw new CliError('usage', `The bundler is not installed. In ${checkout.folder}, run: npm ci`, error)
  })
  try {
    const { outputFiles } = await build({
      entryPoints: [project.mainFile],
      absWorkingDir: project.folder,
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      target: 'node24',
      legalComments: 'none',
      logLevel: 'silent',
      alias: { '@platform/modules': checkout.sdk },
      // The module's own libraries take precedence over those of the SDK.
      nodePaths: [checkout.libraries],
      // CommonJS libraries load built-in modules with `require`, which ES modules lack.
      banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
      ...buildOptions,
    })
    return outputFiles[0]?.contents ?? new Uint8Array()
  } catch (error) {
    throw new CliError('usage', `Failed to bundle the module. ${messageOf(error)}`, error)
  }
}

const defaultTimeoutMs = 15_000

/**
 * Runs a module's main file until it calls `serve`, and returns the module's description. Throws `CliError` if the
 * program does not reach that call.
 */
export async function describeProject(project: Project, timeoutMs = defaultTimeoutMs): Promise<ModuleDescription> {
  const folder = await mkdtemp(join(tmpdir(), 'plat-module-'))
  const [program, descriptionFile] = [join(folder, 'main.mjs'), join(folder, 'description.json')]
  try {
    await writeFile(program, await bundle(project, debugOptions(project)))
    await runUpToServe(project, { program, descriptionFile, timeoutMs })
    const description = await readFile(descriptionFile, 'utf8').catch(() => undefined)
    if (description !== undefined) return JSON.parse(description)
    throw new CliError('usage', `${project.mainFile} must end with: await serve(module)`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

// Only PATH is passed on from the build machine's environment, because the platform does not have the rest.
const environmentFor = (descriptionFile: string) => ({
  PATH: process.env['PATH'],
  [environmentNames.describe]: descriptionFile,
})

async function runUpToServe(
  { folder, mainFile }: Project,
  { program, descriptionFile, timeoutMs }: { program: string; descriptionFile: string; timeoutMs: number },
): Promise<void> {
  const args = ['--enable-source-maps', program]
  const options = {
    cwd: folder,
    env: environmentFor(descriptionFile),
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  } as const
  await promisify(execFile)(process.execPath, args, options).catch((error: ExecError) => {
    if (error.killed === true) {
      const seconds = timeoutMs / 1000
      throw new CliError('usage', `${mainFile} did not reach serve(module) within ${seconds} seconds.`, error)
    }
    throw new CliError('usage', `${mainFile} failed before serve(module):\n${errorLines(error)}`, error)
  })
}

type ExecError = Error & { killed?: boolean; stdout?: string; stderr?: string }

const maxShownLines = 20

// The stack of an error log line is one JSON string, which is printed as separate lines.
function withStackLines(line: string): string[] {
  const stack = memberOf(parseJson(line), 'error', 'stack')
  return typeof stack === 'string' ? stack.split('\n') : [line]
}

// Node.js adds internal stack frames and its version, which do not help the author.
const errorLines = (error: ExecError): string =>
  (error.stderr || error.stdout || messageOf(error))
    .split('\n')
    .flatMap(withStackLines)
    .filter((line) => line.trim() !== '' && !/^Node\.js v\d|^\s+at .*node:internal\//.test(line))
    .slice(0, maxShownLines)
    .join('\n')
