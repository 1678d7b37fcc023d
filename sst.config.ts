/// <reference path="./.sst/platform/config.d.ts" />

export default $config({
  app({ stage }) {
    // The rule of infra/stage-name.ts; SST allows no import here.
    const isProtected = (process.env['PLAT_PROTECTED'] || String(stage === 'production')) === 'true'
    return {
      name: 'platform',
      home: 'aws',
      version: '4.17.1',
      removal: isProtected ? 'retain' : 'remove',
      protect: isProtected,
      providers: { aws: { version: '7.20.0', defaultTags: { tags: { Platform: 'platform', Stage: stage } } } },
    }
  },
  async run() {
    const { domainTarget } = await import('./infra/gateway')
    const { frontTarget, publicUrl } = await import('./infra/front')
    const { initialAdminToken } = await import('./infra/secrets')
    const { adminTokenCommand } = await import('./infra/functions')
    await import('./infra/api')
    await import('./infra/tasks')
    const { topic } = await import('./infra/alarms')
    await import('./infra/dashboard')
    await import('./infra/budget')
    return {
      api: publicUrl,
      portal: $interpolate`${publicUrl}/`,
      initialAdminToken: adminTokenCommand,
      initialAdminTokenSecret: initialAdminToken.name,
      ...(topic && { alarms: topic.arn }),
      ...(domainTarget && { domainTarget }),
      ...(frontTarget && { frontTarget }),
    }
  },
})
