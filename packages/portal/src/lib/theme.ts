import { useSyncExternalStore } from 'react'
import { getPreference, setPreference } from './preferences.ts'

export type Theme = 'system' | 'light' | 'dark'

const isExplicit = (name: string | undefined): name is 'light' | 'dark' => name === 'light' || name === 'dark'
const listeners = new Set<() => void>()
const currentTheme = (): Theme => {
  const { theme } = document.documentElement.dataset
  return isExplicit(theme) ? theme : 'system'
}

export function chooseTheme(theme: Theme): void {
  setPreference('theme', theme === 'system' ? undefined : theme)
  showTheme(theme)
}

function showTheme(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
  for (const listener of listeners) listener()
}

export function applyStoredTheme(): void {
  const theme = getPreference('theme')
  showTheme(isExplicit(theme) ? theme : 'system')
}

const darkScheme = matchMedia('(prefers-color-scheme: dark)')

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  darkScheme.addEventListener('change', listener)
  return () => {
    listeners.delete(listener)
    darkScheme.removeEventListener('change', listener)
  }
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, currentTheme)

const isDark = (): boolean => (currentTheme() === 'system' ? darkScheme.matches : currentTheme() === 'dark')

/** Whether the dark theme is shown, for drawings that CSS cannot style. */
export const useIsDark = (): boolean => useSyncExternalStore(subscribe, isDark)
