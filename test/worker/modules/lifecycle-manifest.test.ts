import { manifestOf } from '@platform/cli/author/manifest-from-code'
import { describe as describeModule } from '@platform/modules/describe'
import { expect, test } from 'vitest'

const slot = { slotId: 'nav.primary', id: 'a', label: 'A', icon: 'hand', route: '/modules/sample', order: 100 } as const
const description = describeModule({
  id: 'sample',
  version: '2.0.0',
  slots: [slot],
  healthChecks: { deep: { tags: ['critical'], check: () => ({ status: 'Healthy' }) } },
  jobs: { beat: { description: 'Beats.', intervalSeconds: 60, run: () => {} } },
})
const given = {
  metadata: { name: 'Sample', description: 'A sample.', author: 'Tests' },
  spec: {
    sdkVersion: '>=0.1.0 <1.0.0',
    image: 'registry.example.com/sample:2.0.0',
    apiBasePath: '/api/sample',
    healthEndpoint: '/health',
  },
}

test('the parts of a manifest that code can tell come from the code', () => {
  const manifest = manifestOf(description, given)
  expect(manifest).toEqual({
    metadata: { id: 'sample', version: '2.0.0', ...given.metadata },
    spec: {
      ...given.spec,
      permissionsRequired: [],
      navSlots: [slot],
      healthChecks: [{ name: 'deep', path: '/health/deep', tags: ['critical'] }],
      backgroundJobs: [{ id: 'beat', description: 'Beats.', intervalSeconds: 60 }],
    },
  })
  expect(Object.keys(manifest.metadata)).toEqual(['id', 'name', 'version', 'description', 'author'])
})

test('what is given beside the code cannot contradict it', () => {
  const stale = {
    ...given,
    metadata: { ...given.metadata, id: 'other', version: '1.0.0' },
    spec: { ...given.spec, navSlots: [], healthChecks: [], backgroundJobs: [] },
  }
  expect(manifestOf(description, stale)).toEqual(manifestOf(description, given))
})

test('a manifest that would not be valid is not made', () => {
  const spec = { ...given.spec, apiBasePath: '/api/v1/sample' }
  expect(() => manifestOf(description, { ...given, spec })).toThrow('apiBasePath')
})
