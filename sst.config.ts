/// <reference path="./.sst/platform/config.d.ts" />

export default $config({
  app({ stage }) {
    const isProduction = stage === 'production'
    return {
      name: 'platform',
      home: 'aws',
      version: '4.17.1',
      removal: isProduction ? 'retain' : 'remove',
      protect: isProduction,
      providers: { aws: { version: '7.20.0', defaultTags: { tags: { Platform: 'platform', Stage: stage } } } },
    }
  },
  async run() {
    const { api, domainTarget } = await import('./infra/gateway')
    const { initialAdminToken } = await import('./infra/secrets')
    const { adminTokenCommand } = await import('./infra/functions')
    await import('./infra/api')
    await import('./infra/tasks')
    const { topic } = await import('./infra/alarms')
    await import('./infra/dashboard')
    return {
      api: api.url,
      portal: $interpolate`${api.url}/`,
      initialAdminToken: adminTokenCommand,
      initialAdminTokenSecret: initialAdminToken.name,
      ...(topic && { alarms: topic.arn }),
      ...(domainTarget && { domainTarget }),
    }
  },
})
