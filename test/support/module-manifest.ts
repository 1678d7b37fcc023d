import type { ModuleManifest } from '@platform/contract/manifest'
import { manifestOf } from '@platform/cli/author/manifest-from-code'

export function manifestFor(id: string, spec: Partial<ModuleManifest['spec']> = {}): ModuleManifest {
  const manifest = manifestOf(
    { id, version: '1.0.0', slots: [], healthChecks: [], jobs: [] },
    {
      metadata: { name: id, description: 'A module under test.', author: 'Tests' },
      spec: {
        sdkVersion: '>=0.1.0 <1.0.0',
        image: `registry.example.com/modules/${id}:1.0.0`,
        apiBasePath: `/api/${id}`,
        healthEndpoint: '/health',
      },
    },
  )
  return { ...manifest, spec: { ...manifest.spec, ...spec } }
}
