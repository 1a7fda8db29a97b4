// The settings as the table of docs/settings.md; a test holds the two together.
import { flagOf, SETTINGS, variablesOf, type SettingName } from '../../src/cli/settings/settings.js'

/** Flag, environment, default, meaning. */
export function settingRows(): string[][] {
  return (Object.keys(SETTINGS) as SettingName[]).map((name) => {
    const setting = SETTINGS[name]
    const flag = 'isVariableOnly' in setting ? '' : code(flagOf(name))
    const inDemo = 'demoDefault' in setting ? `, in demo ${code(setting.demoDefault)}` : ''
    const usual = 'default' in setting ? `${code(setting.default)}${inDemo}` : 'none'
    const only = setting.of.length === 1 ? ` Only for \`${setting.of[0]}\`.` : ''
    return [flag, variablesOf(name).map(code).join(' or '), usual, `${setting.description}${only}`]
  })
}

function code(text: string): string {
  return `\`${text}\``
}
