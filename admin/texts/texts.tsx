// The language of the page. English is part of the application; other languages are loaded when somebody chooses them.
import { createContext, useContext, useEffect, type ReactNode } from 'react'
import { Observable, useObservable } from '../service/observable.js'
import { readStored, writeStored } from '../service/storage.js'
import { english, type Texts } from './english.js'

export type Locale = 'en' | 'fr'

const LOADERS: Readonly<Record<Locale, () => Promise<Texts>>> = {
  en: async () => english,
  fr: async () => (await import('./french.js')).french,
}

export const LOCALES: readonly { readonly locale: Locale; readonly name: string }[] = [
  { locale: 'en', name: 'English' },
  { locale: 'fr', name: 'Français' },
]

interface Language {
  readonly locale: Locale
  readonly texts: Texts
}

const language = new Observable<Language>({ locale: 'en', texts: english })
const TextsContext = createContext<Language>(language.value)
const STORED_LOCALE = 'locale'

export async function chooseLocale(locale: Locale): Promise<void> {
  const texts = await LOADERS[locale]()
  writeStored(STORED_LOCALE, locale)
  language.set({ locale, texts })
}

/** Loads the language that the person has chosen before, or else that of the browser. */
export async function loadLocale(): Promise<void> {
  const stored = readStored(STORED_LOCALE)
  const wanted = LOCALES.find(
    ({ locale }) => locale === stored || (stored === undefined && navigator.language.startsWith(locale)),
  )
  const locale = wanted?.locale ?? 'en'
  language.set({ locale, texts: await LOADERS[locale]() })
}

export function TextsProvider({ children }: { readonly children: ReactNode }) {
  const value = useObservable(language)
  useEffect(() => {
    document.documentElement.lang = value.locale
  }, [value.locale])
  return <TextsContext value={value}>{children}</TextsContext>
}

export function useTexts(): Texts {
  return useContext(TextsContext).texts
}

export function useLocale(): Locale {
  return useContext(TextsContext).locale
}

/** The texts outside of components, such as in a message after a save. */
export function getTexts(): Texts {
  return language.value.texts
}

export function getLocale(): Locale {
  return language.value.locale
}
