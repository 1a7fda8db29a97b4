// Word lists for sample contacts. `name|latin` adds a spelling for the e-mail address.

export interface NamePool {
  readonly given: readonly string[]
  readonly family: readonly string[]
}

/** Given and family names, grouped by region. */
export const NAME_POOLS: readonly NamePool[] = [
  parseNamePool('Ada Grace Oliver Hazel Miles', 'Whitfield Harper Ashdown Marlowe Penrose'),
  parseNamePool('Zoë Élodie François Amélie Étienne', 'Lefèvre Beaumont Noël Rivière Desrosiers'),
  parseNamePool(
    '美咲|misaki 陽翔|haruto 結衣|yui 蓮|ren',
    '佐藤|sato 高橋|takahashi 渡辺|watanabe 小林|kobayashi',
  ),
  parseNamePool('José Lucía Íñigo Begoña Andrés', 'Muñoz Ibáñez Peña Gutiérrez Castaño'),
  parseNamePool('Amara Chidi Ngozi Tunde Folasade', 'Okafor Adeyemi Balogun Eze Nwosu'),
  parseNamePool('Jürgen Käthe Sören Friederike Jörg', 'Müller Groß|gross Schäfer Köhler Böttcher'),
  parseNamePool(
    'Ольга|olga Дмитрий|dmitri Світлана|svitlana Тарас|taras',
    'Иванова|ivanova Коваль|koval Мельник|melnyk',
  ),
  parseNamePool(
    'Łucja|lucja Paweł|pawel Małgorzata|malgorzata Zbigniew',
    'Wójcik Dąbrowska Żukowski Łukasik|lukasik',
  ),
  parseNamePool('ليلى|layla يوسف|yusuf مريم|maryam كريم|karim', 'حداد|haddad منصور|mansour الخطيب|alkhatib'),
  parseNamePool(
    'Søren|soren Åse Bjørn|bjorn Ingrid Freja',
    'Ødegård|odegard Lindqvist Bjørnstad|bjornstad Håkansson',
  ),
  parseNamePool('अनन्या|ananya रोहन|rohan मीरा|meera अर्जुन|arjun', 'शर्मा|sharma वर्मा|varma अय्यर|iyer'),
  parseNamePool('João Inês Tomé Conceição Davi', 'Gonçalves Araújo Simões Brandão Leitão'),
  parseNamePool(
    'Ελένη|eleni Γιώργος|giorgos Σοφία|sofia Νίκος|nikos',
    'Παπαδάκης|papadakis Γεωργίου|georgiou Νικολάου|nikolaou',
  ),
  parseNamePool('Ayşe Çağla|cagla İbrahim|ibrahim Işıl|isil Kerem', 'Yıldız|yildiz Öztürk Şahin Doğan'),
  parseNamePool('민준|minjun 서연|seoyeon 지우|jiwoo 하은|haeun', '김|kim 박|park 최|choi 정|jung'),
  parseNamePool('Mere Wiremu Aroha Tāne Hine', 'Ngata Parata Tūhoe Rangihuna Kīngi'),
  parseNamePool('Nguyệt|nguyet Thảo Đức|duc Hương Quân', 'Trần Phạm Hoàng Đặng|dang Bùi'),
  parseNamePool('Jana Ondřej Šárka Vojtěch Ludmila', 'Dvořáková Černý Růžička Němec Havlíček'),
  parseNamePool('שרה|sara אורי|uri נועה|noa איתן|eitan', 'כהן|cohen לוי|levi ברק|barak'),
  parseNamePool('Siobhán Eoin Caoimhe Pádraig Niamh', "O'Sullivan Byrne Gallagher Doyle Kinsella"),
  parseNamePool('秀英|xiuying 伟|wei 芳|fang 思远|siyuan', '王|wang 李|li 张|zhang 陈|chen'),
  parseNamePool('Wanjiru Otieno Achieng Kamau Njeri', 'Mwangi Odhiambo Kiprop Wambui Mutua'),
]

/** Domains that are reserved for examples. */
export const EMAIL_DOMAINS: readonly string[] = ['example.org', 'example.com', 'example.net']

/** Number ranges that are reserved for fiction: North America, Britain, Ireland, France, Germany, Australia, Sweden. */
export const PHONE_PATTERNS: readonly string[] = [
  '+1 202 555 01##',
  '+1 416 555 01##',
  '+44 20 7946 0###',
  '+44 161 496 0###',
  '+353 20 911 ####',
  '+33 1 99 00 ## ##',
  '+33 6 39 98 ## ##',
  '+49 30 23125 ###',
  '+49 89 99998 ###',
  '+61 2 5550 ####',
  '+46 8 465 004 ##',
]

export const NOTES: readonly string[] = [
  'Prefers to be called in the morning.',
  'Met at the book fair; interested in maps.',
  'Speaks four languages, two of them fluently.',
  'Please send letters to the office, not to the house.',
  'Asked for the catalogue of next spring.\nRemind in March.',
  'Out of town every second week.',
  'Always pays early. 👍',
]

function parseNamePool(given: string, family: string): NamePool {
  return { given: given.split(' '), family: family.split(' ') }
}

export const COMPANIES = [
  {
    code: 'NORD',
    name: 'Nordlicht Optik',
    addresses: [
      { street: 'Hafenstraße 12', city: 'Kiel', country: 'Deutschland' },
      { street: 'Rue du Phare 3', city: 'Genève', country: 'Suisse' },
    ],
  },
  {
    code: 'TERRA',
    name: 'Terracotta & Filhos',
    addresses: [{ street: 'Travessa do Olival 7', city: 'Évora', country: 'Portugal' }],
  },
  {
    code: 'BRIDGE',
    name: 'Bridgewater Instruments',
    addresses: [
      { street: '18 Mill Lane', city: 'Leeds', country: 'United Kingdom' },
      { street: '2 Quay Street', city: 'Cork', country: 'Ireland' },
    ],
  },
  {
    code: 'SAKURA',
    name: '桜工房',
    addresses: [{ street: '本町 4-2', city: '金沢', country: '日本' }],
  },
] as const

export const CIRCLES = [{ name: 'Customers' }, { name: 'Suppliers' }, { name: 'Press' }] as const
