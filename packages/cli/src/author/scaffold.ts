import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { ModuleManifest } from '@platform/contract/manifest'
import { checkManifest } from '@platform/core/modules/check-manifest'
import { parseReference } from '@platform/oci/reference'
import { CliError, hasCode } from '../exit.ts'
import { checkout } from './checkout.ts'
import { ownRegistry } from './runtime.ts'

// The default address of the local platform's registry.
const defaultRegistry = '127.0.0.1:8081'

/**
 * Writes a new module, which builds and runs unchanged, into a folder named by its id, and returns the path. Throws
 * `CliError` for an invalid id or image, or a folder that is not empty.
 */
export async function scaffold(id: string, image?: string): Promise<string> {
  const repository = image ?? `${(await ownRegistry())?.host ?? defaultRegistry}/modules/${id}`
  const manifest = manifestOf(id, repository)
  checkImage(image)
  const parsed = ModuleManifest.safeParse(manifest)
  if (!parsed.success || checkManifest(parsed.data).length > 0) {
    const advice =
      'Use lowercase letters, digits and single hyphens, at most 50 characters, and no reserved path of the platform.'
    throw new CliError('usage', `${id} is not a valid module id. ${advice}`)
  }
  const folder = resolve(id)
  if ((await entriesOf(folder)).length > 0) throw new CliError('usage', `${folder} is not empty; nothing was written.`)
  for (const [path, content] of Object.entries(filesOf(id, manifest))) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content)
  }
  return folder
}

function checkImage(image: string | undefined): void {
  const reference = image === undefined ? undefined : parseReference(image)
  const isRepository = reference !== undefined && reference.tag === undefined && reference.digest === undefined
  if (image === undefined || isRepository) return
  throw new CliError(
    'usage',
    `${image} is not a repository with a registry, such as registry.example.com/modules/hello.`,
  )
}

const entriesOf = (folder: string): Promise<string[]> =>
  readdir(folder).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  })

const firstVersion = '0.1.0'

// The first build adds the fields that the code defines.
const manifestOf = (id: string, repository: string) => ({
  metadata: {
    id,
    name: nameOf(id),
    version: firstVersion,
    description: `Describe what ${nameOf(id)} does, in one sentence.`,
    author: 'Your name',
  },
  spec: {
    sdkVersion: '>=0.1.0 <1.0.0',
    image: `${repository}:${firstVersion}`,
    apiBasePath: `/api/${id}`,
    healthEndpoint: '/health',
  },
})

const nameOf = (id: string): string =>
  id
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ')

const filesOf = (id: string, manifest: object): Record<string, string> => ({
  'src/main.ts': mainSourceOf(id),
  'module.json': formatJson(manifest),
  'package.json': formatJson({ name: id, private: true, type: 'module' }),
  'tsconfig.json': formatJson({
    compilerOptions: {
      target: 'es2024',
      lib: ['es2024', 'esnext.disposable'],
      types: ['node'],
      typeRoots: [join(checkout.libraries, '@types')],
      module: 'nodenext',
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      paths: { '@platform/modules': [checkout.sdk] },
    },
    include: ['src'],
  }),
  '.gitignore': 'dist/\nnode_modules/\n*.key\n',
})

const formatJson = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

// Ids with hyphens must be quoted as property names.
const propertyOf = (id: string): string => (id.includes('-') ? `'${id}'` : id)

const mainSourceOf = (id: string): string => `import { callerOf, defineModule, serve } from '@platform/modules'

const module = defineModule({
  id: '${id}',
  version: '${firstVersion}',

  // A navigation entry of the portal. Icon names: https://lucide.dev/icons
  slots: [
    {
      slotId: 'nav.primary',
      id: '${id}',
      label: '${nameOf(id).slice(0, 40)}',
      icon: 'sparkles',
      route: '/modules/${id}',
      order: 100,
    },
  ],

  // Shown on the platform's health page and run every minute.
  healthChecks: {
    ${propertyOf(id)}: { tags: ['informational'], check: () => ({ status: 'Healthy' }) },
  },

  // Run by the platform; modules must not use timers of their own.
  jobs: {
    tick: {
      description: 'Logs a message.',
      intervalSeconds: 60,
      run: (context) => context.getLogger('tick').info('The module is running'),
    },
  },

  routes(app, { module }) {
    app.get('/api/${id}', (c) => {
      const { userId } = callerOf(c)
      return c.json({ greeting: 'Hello', to: userId, from: module.id, version: module.version })
    })
    app.get('/modules/${id}', (c) => c.html('<!doctype html><title>${nameOf(id)}</title><h1>${nameOf(id)}</h1>'))
  },
})

await serve(module)
`
