/** Settings of the deployment itself, which functions do not receive. */

/** Setting → pattern, and a description of valid values for the error message. */
const patterns = {
  PLAT_ALARM_EMAIL: [/^[^\s@,]+@[^\s@,]+\.[^\s@,]+$/, 'an e-mail address'],
  PLAT_PROTECTED: [/^(?:true|false)$/, 'true or false'],
  PLAT_MONITORING: [/^(?:off|basic|full)$/, 'off, basic or full'],
  PLAT_DOMAIN: [/^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/, 'a domain name in lower case'],
  PLAT_DOMAIN_CERTIFICATE: [
    /^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate\/[0-9a-f-]+$/,
    'the ARN of a certificate of AWS Certificate Manager',
  ],
  PLAT_CHANNEL: [/^(on|off)$/, 'on or off'],
  PLAT_FRONT: [/^cloudfront$/, 'cloudfront'],
  PLAT_FRONT_CERTIFICATE: [
    /^arn:aws[a-z-]*:acm:us-east-1:\d{12}:certificate\/[0-9a-f-]+$/,
    'the ARN of a certificate of AWS Certificate Manager in us-east-1',
  ],
  PLAT_BUDGET_USD: [/^[1-9]\d{0,8}$/, 'a whole number of US dollars'],
  PLAT_CONCURRENCY: [/^[1-9]\d{0,6}$/, 'a whole number'],
  PLAT_THROTTLE_PER_SECOND: [/^[1-9]\d{0,5}$/, 'a whole number'],
  PLAT_RESTORED_TABLE: [/^[A-Za-z0-9_.-]{3,255}$/, 'the name of a table'],
} as const satisfies Record<string, readonly [RegExp, string]>

const requirements = [
  ['PLAT_DOMAIN_CERTIFICATE', 'PLAT_DOMAIN'],
  ['PLAT_FRONT', 'PLAT_DOMAIN'],
  ['PLAT_FRONT_CERTIFICATE', 'PLAT_FRONT'],
  ['PLAT_BUDGET_USD', 'PLAT_ALARM_EMAIL'],
] as const

export const optionNames: readonly string[] = Object.keys(patterns)

/**
 * Returns the options in the environment. An empty value counts as unset. Throws one error that names all invalid
 * settings.
 */
export function optionsOf(environment: Record<string, string | undefined>) {
  const errors = Object.entries(patterns).flatMap(([name, [pattern, description]]) => {
    const value = environment[name]
    return !value || pattern.test(value) ? [] : [`${name}: must be ${description}`]
  })
  for (const [name, requiredSetting] of requirements) {
    if (environment[name] && !environment[requiredSetting]) errors.push(`${name}: requires ${requiredSetting}`)
  }
  if (environment['PLAT_FRONT'] && environment['PLAT_FRONT_SECRET_SHA256']) {
    errors.push('PLAT_FRONT_SECRET_SHA256: the front of PLAT_FRONT has its own secret')
  }
  if (environment['PLAT_FRONT'] && !environment['PLAT_DOMAIN_CERTIFICATE'] !== !environment['PLAT_FRONT_CERTIFICATE']) {
    errors.push('PLAT_FRONT: requires both PLAT_DOMAIN_CERTIFICATE and PLAT_FRONT_CERTIFICATE, or none')
  }
  if (errors.length > 0) throw new Error(`Invalid settings in the environment:\n  ${errors.join('\n  ')}`)
  return {
    monitoring: monitoringOf(environment['PLAT_MONITORING']),
    alarmEmail: environment['PLAT_ALARM_EMAIL'] || undefined,
    budgetUsd: environment['PLAT_BUDGET_USD'] || undefined,
    concurrency: environment['PLAT_CONCURRENCY'] || undefined,
    throttlePerSecond: environment['PLAT_THROTTLE_PER_SECOND'] || undefined,
    front: environment['PLAT_FRONT'] || undefined,
    frontCertificate: environment['PLAT_FRONT_CERTIFICATE'] || undefined,
    domain: environment['PLAT_DOMAIN'] || undefined,
    domainCertificate: environment['PLAT_DOMAIN_CERTIFICATE'] || undefined,
    channel: environment['PLAT_CHANNEL'] || undefined,
    restoredTable: environment['PLAT_RESTORED_TABLE'] || undefined,
  }
}

const monitoringOf = (value: string | undefined) =>
  value === 'off' || value === 'basic' || value === 'full' ? value : undefined

export const options = optionsOf(process.env)
