import { escapeTerminal } from '@platform/core/log'

export function formatModuleLine(moduleId: string, line: string): string {
  const fields = objectIn(line)
  // Keeps a JSON line that already contains the module's id.
  if (fields?.['module_id'] === moduleId) return escapeTerminal(line)
  const time = new Date().toISOString()
  const content = fields ?? { time, level: 'info', message: line }
  return escapeTerminal(JSON.stringify({ ...content, module_id: moduleId }))
}

function objectIn(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
