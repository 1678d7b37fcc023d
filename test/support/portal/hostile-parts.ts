import { payloads } from './payloads.ts'

/** The hostile texts as fields of one line take them. */
export const lines = payloads.map(([, text]) => text.trim().replaceAll(/[\t\u2028\u202E]/g, ''))

/** What a hostile module is told to say. */
export type HostileWords = typeof hostileParts

/** What a module says of itself, all of it hostile as far as the manifest's schema lets it. */
export const hostileParts = {
  lines,
  slots: lines
    .filter((text) => text.length <= 40)
    .map((label, index) => ({
      slotId: index % 2 === 0 ? ('nav.primary' as const) : ('nav.settings' as const),
      id: `entry-${index}`,
      label,
      icon: 'bug',
      route: '/modules/hostile' as const,
      order: 100 + index,
    })),
  jobs: lines.map((description, index) => ({ id: `job-${index}`, description, intervalSeconds: 3600 })),
  checks: lines.map((description, index) => ({ name: `check-${index}`, description })),
}
