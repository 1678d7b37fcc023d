/** What an operator may set for the deployment itself: the functions hear nothing of it. */

/** Setting → what it has to be, and how that is said. */
const forms = {
  PLAT_ALARM_EMAIL: [/^[^\s@,]+@[^\s@,]+\.[^\s@,]+$/, 'an e-mail address'],
  PLAT_DOMAIN: [/^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/, 'a domain name in lower case'],
  PLAT_DOMAIN_CERTIFICATE: [
    /^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate\/[0-9a-f-]+$/,
    'the ARN of a certificate of AWS Certificate Manager',
  ],
  PLAT_RESTORED_TABLE: [/^[A-Za-z0-9_.-]{3,255}$/, 'the name of a table'],
} as const satisfies Record<string, readonly [RegExp, string]>

export const optionNames: readonly string[] = Object.keys(forms)

/** What is set. An empty value counts as unset. Throws one error that names every bad value. */
export function optionsOf(environment: Record<string, string | undefined>) {
  const problems = Object.entries(forms).flatMap(([name, [form, wanted]]) => {
    const value = environment[name]
    return !value || form.test(value) ? [] : [`${name}: must be ${wanted}`]
  })
  if (environment['PLAT_DOMAIN_CERTIFICATE'] && !environment['PLAT_DOMAIN']) {
    problems.push('PLAT_DOMAIN_CERTIFICATE: is for a PLAT_DOMAIN, which is not set')
  }
  if (problems.length > 0) throw new Error(`Bad settings in the environment:\n  ${problems.join('\n  ')}`)
  return {
    alarmEmail: environment['PLAT_ALARM_EMAIL'] || undefined,
    domain: environment['PLAT_DOMAIN'] || undefined,
    domainCertificate: environment['PLAT_DOMAIN_CERTIFICATE'] || undefined,
    restoredTable: environment['PLAT_RESTORED_TABLE'] || undefined,
  }
}

export const options = optionsOf(process.env)
