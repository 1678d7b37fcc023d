/** Settings of the deployment itself; functions do not receive them. */

/** Setting → pattern, and a description of valid values for the error message. */
const patterns = {
  PLAT_ALARM_EMAIL: [/^[^\s@,]+@[^\s@,]+\.[^\s@,]+$/, 'an e-mail address'],
  PLAT_DOMAIN: [/^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/, 'a domain name in lower case'],
  PLAT_DOMAIN_CERTIFICATE: [
    /^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate\/[0-9a-f-]+$/,
    'the ARN of a certificate of AWS Certificate Manager',
  ],
  PLAT_CHANNEL: [/^(on|off)$/, 'on or off'],
  PLAT_RESTORED_TABLE: [/^[A-Za-z0-9_.-]{3,255}$/, 'the name of a table'],
} as const satisfies Record<string, readonly [RegExp, string]>

export const optionNames: readonly string[] = Object.keys(patterns)

/** An empty value counts as unset. Throws one error that names all invalid settings. */
export function optionsOf(environment: Record<string, string | undefined>) {
  const errors = Object.entries(patterns).flatMap(([name, [pattern, description]]) => {
    const value = environment[name]
    return !value || pattern.test(value) ? [] : [`${name}: must be ${description}`]
  })
  if (environment['PLAT_DOMAIN_CERTIFICATE'] && !environment['PLAT_DOMAIN']) {
    errors.push('PLAT_DOMAIN_CERTIFICATE: requires PLAT_DOMAIN')
  }
  if (errors.length > 0) throw new Error(`Invalid settings in the environment:\n  ${errors.join('\n  ')}`)
  return {
    alarmEmail: environment['PLAT_ALARM_EMAIL'] || undefined,
    domain: environment['PLAT_DOMAIN'] || undefined,
    domainCertificate: environment['PLAT_DOMAIN_CERTIFICATE'] || undefined,
    channel: environment['PLAT_CHANNEL'] || undefined,
    restoredTable: environment['PLAT_RESTORED_TABLE'] || undefined,
  }
}

export const options = optionsOf(process.env)
